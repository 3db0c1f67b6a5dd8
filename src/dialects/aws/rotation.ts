// Rotation of keys in AWS KMS: a rotation there is a new version here.
import type { JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import { numberOf, objectOf, pageOf, secondsOf, textOf } from './fields.ts';
import { type FoundKey, keyOf, need, stateRefusal } from './found-keys.ts';
import { materialIdOf } from './key-metadata.ts';
import type { AwsOperation, Work } from './operation.ts';

const secondsOfDay = 86_400;
const usualDays = 365;

/** The key, if it is one that rotates and may. */
function rotating(work: Work): FoundKey {
  const key = keyOf(work);
  if (key.known && key.known.type !== 'aes256-gcm') {
    throw failure('UnsupportedOperationException', `${key.arn} does not rotate: only symmetric encryption keys do.`);
  }
  if (key.known?.origin === 'imported') {
    throw failure('UnsupportedOperationException', `${key.arn} does not rotate: its bytes were imported.`);
  }
  need(stateRefusal(key));
  return key;
}

function setRotation(isOn: boolean): AwsOperation {
  return {
    keys: ['KeyId'],
    about: 'configureManagedKey',
    plan(given, work) {
      const days = numberOf(given, 'RotationPeriodInDays') ?? usualDays;
      return {
        id: 'configureManagedKey',
        params: { key: rotating(work).ref },
        body: { rotateAfter: isOn ? days * secondsOfDay : null },
        answer: () => undefined,
      };
    },
  };
}

/** Answered for keys of every spec: those that do not rotate have rotation disabled. */
const getKeyRotationStatus: AwsOperation = {
  keys: ['KeyId'],
  about: 'getManagedKey',
  plan(_given, work) {
    const { ref, arn } = keyOf(work);
    return {
      id: 'getManagedKey',
      params: { key: ref },
      answer({ key }) {
        const { rotateAfter, versions } = objectOf(key);
        if (typeof rotateAfter !== 'number') return { KeyId: arn, KeyRotationEnabled: false };
        const [newest] = versions as readonly JsonObject[];
        return {
          KeyId: arn,
          KeyRotationEnabled: true,
          RotationPeriodInDays: Math.max(1, Math.round(rotateAfter / secondsOfDay)),
          ...(newest && { NextRotationDate: secondsOf(newest.createdAt) + rotateAfter }),
        };
      },
    };
  },
};

const rotateKeyOnDemand: AwsOperation = {
  keys: ['KeyId'],
  about: 'rotateManagedKey',
  otherwise: 'KMSInvalidStateException',
  plan(_given, work) {
    const { ref, arn } = rotating(work);
    return { id: 'rotateManagedKey', params: { key: ref }, answer: () => ({ KeyId: arn }) };
  },
};

/** Versions but the first, the newest first. One that came when the key was due for it came by itself. */
const listKeyRotations: AwsOperation = {
  keys: ['KeyId'],
  about: 'getManagedKey',
  plan(given, work) {
    const { ref, arn, known } = keyOf(work);
    if (known && known.type !== 'aes256-gcm') {
      throw failure('UnsupportedOperationException', `${arn} does not rotate: only symmetric encryption keys do.`);
    }
    const withFirst = textOf(given, 'IncludeKeyMaterial') === 'ALL_KEY_MATERIAL';
    return {
      id: 'getManagedKey',
      params: { key: ref },
      answer({ key }) {
        const all = rotationsOf(objectOf(key), arn).filter(
          ({ RotationDate }) => withFirst || RotationDate !== undefined,
        );
        const { items, more } = pageOf(given, all, 1000);
        return { Rotations: items, ...more };
      },
    };
  },
};

interface Rotation {
  readonly KeyMaterialId: string;
  readonly RotationDate?: number;
}

function rotationsOf({ id, versions, primaryVersion, rotateAfter }: JsonObject, arn: string): Rotation[] {
  const all = versions as readonly JsonObject[];
  return all.map(({ version, createdAt }, at) => {
    const before = all[at + 1];
    const base = {
      KeyId: arn,
      KeyMaterialId: materialIdOf(String(id), Number(version)),
      KeyMaterialState: version === primaryVersion ? 'CURRENT' : 'NON_CURRENT',
    };
    if (version === 1) return base;
    const age = before && secondsOf(createdAt) - secondsOf(before.createdAt);
    const isDue = typeof rotateAfter === 'number' && age !== undefined && age >= rotateAfter;
    return { ...base, RotationDate: secondsOf(createdAt), RotationType: isDue ? 'AUTOMATIC' : 'ON_DEMAND' };
  });
}

export const rotationOperations = {
  EnableKeyRotation: setRotation(true),
  DisableKeyRotation: setRotation(false),
  GetKeyRotationStatus: getKeyRotationStatus,
  RotateKeyOnDemand: rotateKeyOnDemand,
  ListKeyRotations: listKeyRotations,
} as const;
