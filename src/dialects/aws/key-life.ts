// Operations of AWS KMS on the life of keys: made, described, listed, disabled, deleted, and when they were last used.
import { awsIdOf } from '../../core/aws-names.ts';
import type { JsonObject } from '../../model/json.ts';
import { derOfPem } from './data-keys.ts';
import { failure } from './errors.ts';
import { numberOf, objectOf, secondsOf, textOf } from './fields.ts';
import { factsOf, keyOf, need, stateRefusal } from './found-keys.ts';
import { hasKind, kindOf, metadataOf, newKeyType, primaryOf } from './key-metadata.ts';
import { keyArn, type Place } from './names.ts';
import type { AwsOperation, Call } from './operation.ts';
import { needDefaultPolicy } from './policies.ts';
import { tagsOf } from './tags.ts';

const createKey: AwsOperation = {
  about: 'createManagedKey',
  async plan(given, work) {
    if (given.MultiRegion === true) throw failure('UnsupportedOperationException', 'There is one region here.');
    const origin = textOf(given, 'Origin') ?? 'AWS_KMS';
    const isOfStore = given.CustomKeyStoreId !== undefined || given.XksKeyId !== undefined;
    if (isOfStore || !['AWS_KMS', 'EXTERNAL'].includes(origin)) {
      throw failure('UnsupportedOperationException', 'There are no custom key stores here.');
    }
    needDefaultPolicy(textOf(given, 'Policy'), work.place);
    const description = textOf(given, 'Description') ?? '';
    const fields = {
      ...newKeyType(given),
      tags: tagsOf(given.Tags),
      deletionAllowed: true,
      ...(origin === 'EXTERNAL' && { origin: 'imported' }),
      ...(description !== '' && { props: { description } }),
    };
    const body = { name: await work.newName(fields), ...fields };
    const answer: Call['answer'] = ({ key }) => ({ KeyMetadata: metadataOf(withVersions(key), work.place) });
    return { id: 'createManagedKey', body, answer };
  },
};

/** A native key as `metadataOf` takes it. */
function withVersions(key: unknown): JsonObject {
  return { versions: [], ...objectOf(key) };
}

const reading = { keys: ['*KeyId'], about: 'getManagedKey' } as const;

const describeKey: AwsOperation = {
  ...reading,
  plan: (_given, work) => ({
    id: 'getManagedKey',
    params: { key: keyOf(work).ref },
    answer: ({ key }) => ({ KeyMetadata: metadataOf(withVersions(key), work.place) }),
  }),
};

const getPublicKey: AwsOperation = {
  ...reading,
  plan(_given, work) {
    const found = keyOf(work);
    if (found.known && !factsOf(found)?.isAsymmetric) {
      throw failure('UnsupportedOperationException', `${found.arn} has no public key.`);
    }
    need(stateRefusal(found));
    return {
      id: 'getManagedKey',
      params: { key: found.ref },
      answer: ({ key }) => ({
        KeyId: found.arn,
        PublicKey: derOfPem(primaryOf(withVersions(key))?.publicKey),
        ...kindOf(objectOf(key)),
      }),
    };
  },
};

/** One page of the keys that AWS KMS has a spec for; their number may be smaller than the limit. */
export function listCall(
  given: JsonObject,
  most: number,
  { withPending, write }: { withPending: boolean; write: (items: readonly JsonObject[]) => object },
): Call {
  const limit = Math.min(numberOf(given, 'Limit') ?? Math.min(100, most), most);
  const cursor = textOf(given, 'Marker');
  return {
    id: 'listManagedKeys',
    query: {
      limit: String(limit),
      secrets: 'false',
      ...(withPending && { pending: 'true' }),
      ...(cursor !== undefined && { cursor }),
    },
    answer: ({ data, pagination }) => {
      const next = textOf(objectOf(pagination), 'nextCursor');
      const items = (data as readonly JsonObject[]).filter(hasKind);
      const more = next === undefined ? { Truncated: false } : { Truncated: true, NextMarker: next };
      return { ...write(items), ...more };
    },
  };
}

/** The type of refusals of lists: all else that a client says was checked before. */
export const listing = { about: 'listManagedKeys', otherwise: 'InvalidMarkerException' } as const;

function entryOf({ id, name }: JsonObject, place: Place): object {
  const awsId = awsIdOf({ id: String(id), name: String(name) });
  return { KeyId: awsId, KeyArn: keyArn(place, awsId) };
}

const listKeys: AwsOperation = {
  ...listing,
  plan(given, { place }) {
    const owners: readonly unknown[] = Array.isArray(given.ResourceOwners) ? given.ResourceOwners : [];
    if (owners.some((owner) => owner !== 'SELF')) {
      throw failure('UnsupportedOperationException', 'ResourceOwners: the keys here are those of the account.');
    }
    return listCall(given, 1000, {
      withPending: false,
      write: (items) => ({ Keys: items.map((item) => entryOf(item, place)) }),
    });
  },
};

function setState(state: 'active' | 'suspended'): AwsOperation {
  return {
    keys: ['KeyId'],
    about: 'setManagedKeyState',
    otherwise: 'KMSInvalidStateException',
    plan(_given, work) {
      const key = keyOf(work);
      if (key.known?.state === 'active') need(stateRefusal(key));
      return {
        id: 'setManagedKeyState',
        params: { key: key.ref },
        body: { state, used: true },
        answer: () => undefined,
      };
    },
  };
}

const scheduleKeyDeletion: AwsOperation = {
  keys: ['KeyId'],
  about: 'deleteManagedKey',
  otherwise: 'KMSInvalidStateException',
  plan(given, work) {
    const key = keyOf(work);
    const days = numberOf(given, 'PendingWindowInDays') ?? 30;
    if (key.known && key.known.state !== 'pending-deletion' && !key.known.deletionAllowed) {
      throw failure(
        'UnsupportedOperationException',
        `${key.arn} may not be deleted: its config does not allow it yet.`,
      );
    }
    return {
      id: 'deleteManagedKey',
      params: { key: key.ref },
      body: { days, used: true },
      answer: ({ restorableUntil }) => ({
        KeyId: key.arn,
        DeletionDate: secondsOf(restorableUntil),
        KeyState: 'PendingDeletion',
        PendingWindowInDays: days,
      }),
    };
  },
};

const cancelKeyDeletion: AwsOperation = {
  keys: ['KeyId'],
  about: 'restoreManagedKey',
  otherwise: 'KMSInvalidStateException',
  plan(_given, work) {
    const key = keyOf(work);
    if (key.known && key.known.state !== 'pending-deletion') {
      throw failure('KMSInvalidStateException', `${key.arn} is not pending deletion.`);
    }
    return {
      id: 'restoreManagedKey',
      params: { id: key.ref },
      query: { suspended: 'true' },
      answer: () => ({ KeyId: key.arn }),
    };
  },
};

/** Operations under the names that uses are counted by. */
const operationNames: Readonly<Record<string, string>> = {
  encrypt: 'Encrypt',
  decrypt: 'Decrypt',
  rewrap: 'ReEncrypt',
  datakey: 'GenerateDataKey',
  'datakey-wrapped': 'GenerateDataKeyWithoutPlaintext',
  sign: 'Sign',
  verify: 'Verify',
  mac: 'GenerateMac',
  derive: 'DeriveSharedSecret',
};

const getKeyLastUsage: AwsOperation = {
  keys: ['KeyId'],
  about: 'listManagedKeyDependents',
  plan(_given, work) {
    const { ref, arn, known } = keyOf(work);
    return {
      id: 'listManagedKeyDependents',
      params: { key: ref },
      answer({ dependents }) {
        const uses = dependents as readonly JsonObject[];
        const last = uses.find(({ operation }) => Object.hasOwn(operationNames, String(operation)));
        const since = secondsOf(known?.createdAt ?? 0);
        const usage = last && {
          Operation: operationNames[String(last.operation)],
          Timestamp: secondsOf(last.lastUsedAt),
        };
        return { KeyId: arn, KeyCreationDate: since, TrackingStartDate: since, ...(usage && { KeyLastUsage: usage }) };
      },
    };
  },
};

export const keyLifeOperations = {
  CreateKey: createKey,
  DescribeKey: describeKey,
  GetPublicKey: getPublicKey,
  ListKeys: listKeys,
  EnableKey: setState('active'),
  DisableKey: setState('suspended'),
  ScheduleKeyDeletion: scheduleKeyDeletion,
  CancelKeyDeletion: cancelKeyDeletion,
  GetKeyLastUsage: getKeyLastUsage,
} as const;
