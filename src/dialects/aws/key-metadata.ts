// Managed keys in AWS KMS's words: their KeyMetadata, and the types that a KeySpec and KeyUsage stand for.
import { awsIdOf } from '../../core/aws-names.ts';
import { toHex, utf8 } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import type { JsonObject } from '../../model/json.ts';
import { type KeyType, type KeyUse, keyTypeFacts, keyTypes } from '../../model/key-types.ts';
import { failure } from './errors.ts';
import { objectOf, secondsOf, textOf } from './fields.ts';
import { algorithmsOf } from './found-keys.ts';
import { keyArn, type Place } from './names.ts';

const usages = ['ENCRYPT_DECRYPT', 'SIGN_VERIFY', 'GENERATE_VERIFY_MAC', 'KEY_AGREEMENT'] as const;
type Usage = (typeof usages)[number];

const usesOf: Readonly<Record<Usage, readonly KeyUse[]>> = {
  ENCRYPT_DECRYPT: ['encrypt', 'decrypt'],
  SIGN_VERIFY: ['sign', 'verify'],
  GENERATE_VERIFY_MAC: ['mac', 'verify'],
  KEY_AGREEMENT: ['derive'],
};

const algorithmFields: Readonly<Record<Usage, string>> = {
  ENCRYPT_DECRYPT: 'EncryptionAlgorithms',
  SIGN_VERIFY: 'SigningAlgorithms',
  GENERATE_VERIFY_MAC: 'MacAlgorithms',
  KEY_AGREEMENT: 'KeyAgreementAlgorithms',
};

function typeIn({ type }: JsonObject): KeyType | undefined {
  return keyTypes.find((each) => each === type);
}

/** KeySpec of a native key; undefined if AWS KMS has none for it. */
function specOf(key: JsonObject): string | undefined {
  const type = typeIn(key);
  return type && keyTypeFacts[type].awsSpec;
}

/** The usage that uses stand for; undefined if they stand for none. */
function usageOf(uses: readonly string[]): Usage | undefined {
  return usages.find((usage) => uses.includes(usesOf[usage][0] ?? ''));
}

/** Whether AWS KMS has keys like a native one. */
export function hasKind(key: JsonObject): boolean {
  return specOf(key) !== undefined && usageOf(key.uses as readonly string[]) !== undefined;
}

/** Spec, usage and algorithms of a native key. Throws `UnsupportedOperationException` if AWS KMS has none like it. */
export function kindOf(key: JsonObject): object {
  const spec = specOf(key);
  const usage = usageOf(key.uses as readonly string[]);
  if (spec === undefined || usage === undefined) {
    throw failure('UnsupportedOperationException', 'AWS KMS has no keys like this one.');
  }
  return {
    CustomerMasterKeySpec: spec,
    KeySpec: spec,
    KeyUsage: usage,
    [algorithmFields[usage]]: algorithmsOf(typeIn(key), usage),
  };
}

const states: Readonly<Record<string, string>> = {
  active: 'Enabled',
  suspended: 'Disabled',
  deactivated: 'Disabled',
  compromised: 'Disabled',
  'pre-active': 'Disabled',
  'pending-deletion': 'PendingDeletion',
  destroyed: 'PendingDeletion',
};

/** KeyMetadata of a native key with its versions. */
export function metadataOf(key: JsonObject, place: Place): object {
  const { state, createdAt, origin, restorableUntil } = key;
  const id = String(key.id);
  const awsId = awsIdOf({ id, name: String(key.name) });
  const kind = kindOf(key);
  const isPendingImport = origin === 'imported' && primaryOf(key) === undefined;
  const known = states[String(state)] ?? 'Unavailable';
  const keyState = isPendingImport && known === 'Enabled' ? 'PendingImport' : known;
  const isPendingDeletion = keyState === 'PendingDeletion' && restorableUntil !== undefined;
  return {
    AWSAccountId: place.account,
    KeyId: awsId,
    Arn: keyArn(place, awsId),
    CreationDate: secondsOf(createdAt),
    Enabled: keyState === 'Enabled',
    Description: textOf(objectOf(key.props), 'description') ?? '',
    KeyState: keyState,
    ...(isPendingDeletion && { DeletionDate: secondsOf(restorableUntil) }),
    Origin: origin === 'imported' ? 'EXTERNAL' : 'AWS_KMS',
    ...(origin === 'imported' && !isPendingImport && { ExpirationModel: 'KEY_MATERIAL_DOES_NOT_EXPIRE' }),
    KeyManager: 'CUSTOMER',
    ...kind,
    MultiRegion: false,
    ...(specOf(key) === 'SYMMETRIC_DEFAULT' &&
      !isPendingImport && { CurrentKeyMaterialId: materialIdOf(id, Number(key.primaryVersion ?? key.latestVersion)) }),
  };
}

/** The version that is used, or the newest; undefined if its bytes are not there. */
export function primaryOf({ versions, primaryVersion }: JsonObject): JsonObject | undefined {
  const all = versions as readonly JsonObject[];
  const chosen = all.find(({ version }) => version === primaryVersion) ?? all[0];
  return chosen?.state === 'destroyed' ? undefined : chosen;
}

/** A version's id there: 64 hexadecimal digits that say nothing of its bytes. */
export function materialIdOf(keyId: string, version: number): string {
  return toHex(sha256(utf8(`kms/aws-material/1\0${keyId}\0${version}`)));
}

/** The type for a new key of a spec and usage. Throws `ValidationException`, `UnsupportedOperationException`. */
export function newKeyType(given: JsonObject): { readonly type: KeyType; readonly uses: readonly KeyUse[] } {
  const spec = textOf(given, 'KeySpec') ?? textOf(given, 'CustomerMasterKeySpec') ?? 'SYMMETRIC_DEFAULT';
  const type = keyTypes.find((each) => keyTypeFacts[each].awsSpec === spec);
  if (!type) throw failure('UnsupportedOperationException', `KeySpec ${spec} is not supported here.`);
  const named = textOf(given, 'KeyUsage');
  if (named === undefined && spec !== 'SYMMETRIC_DEFAULT') {
    throw failure(
      'ValidationException',
      'You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys.',
    );
  }
  const usage = usages.find((each) => each === (named ?? 'ENCRYPT_DECRYPT'));
  if (usage === undefined || algorithmsOf(type, usage).length === 0) {
    throw failure('ValidationException', `KeyUsage ${named} is not compatible with KeySpec ${spec}`);
  }
  return { type, uses: usesOf[usage] };
}
