// Operations of AWS KMS on keys themselves: their life, names, tags, rotation and policy.
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { type KeyType, type KeyUse, keyTypeFacts, keyTypes } from '../../model/key-types.ts';
import { failure } from './errors.ts';
import { numberOf, textOf, wordOf } from './fields.ts';
import { aliasArn, keyArn, type Place, uuidOf } from './names.ts';
import type { AwsOperation, FoundKey, Work } from './operation.ts';

const day = 86_400_000;
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
const onKey = { KeyId: 'text! 1-2048' };
const paged = { Limit: 'number 1-1000', Marker: 'text 1-1024' };

function keyOf({ keys }: Work, at = 0): FoundKey {
  const key = keys[at];
  if (!key) throw failure('ValidationException', 'KeyId is missing');
  return key;
}

/** The native key. */
async function read(work: Work, key: FoundKey): Promise<JsonObject> {
  return objectOf((await work.call({ id: 'getManagedKey', params: { key: key.ref } })).key);
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function factsOf(type: unknown) {
  return Object.hasOwn(keyTypeFacts, String(type)) ? keyTypeFacts[type as KeyType] : undefined;
}

/** The usage that a key's uses stand for. */
function usageOf(key: JsonObject): Usage {
  const uses = key.uses as readonly string[];
  return usages.find((usage) => uses.includes(usesOf[usage][0] ?? '')) ?? 'ENCRYPT_DECRYPT';
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

function metadataOf(key: JsonObject, place: Place): object {
  const { id, type, state, createdAt, origin, latestVersion, restorableUntil } = key;
  const facts = factsOf(type);
  const spec = facts?.awsSpec;
  if (spec === undefined) throw failure('NotFoundException', 'the key has no counterpart in AWS KMS');
  const usage = usageOf(key);
  const imported = origin === 'imported';
  const keyState = imported && latestVersion === 0 ? 'PendingImport' : (states[String(state)] ?? 'Unavailable');
  return {
    AWSAccountId: place.account,
    KeyId: uuidOf(String(id)),
    Arn: keyArn(place, String(id)),
    CreationDate: secondsOf(createdAt),
    Enabled: keyState === 'Enabled',
    Description: textOf(objectOf(key.props), 'description') ?? '',
    KeyUsage: usage,
    KeyState: keyState,
    ...(keyState === 'PendingDeletion' &&
      restorableUntil !== undefined && { DeletionDate: secondsOf(restorableUntil) }),
    Origin: imported ? 'EXTERNAL' : 'AWS_KMS',
    KeyManager: 'CUSTOMER',
    CustomerMasterKeySpec: spec,
    KeySpec: spec,
    [algorithmFields[usage]]: facts?.purposes.find(({ aws }) => aws?.usage === usage)?.aws?.algorithms ?? [],
    MultiRegion: false,
  };
}

function secondsOf(time: unknown): number {
  return (typeof time === 'number' ? time : Date.parse(String(time))) / 1000;
}

/** The type of ours for a spec and usage. Throws `ValidationException`, `UnsupportedOperationException`. */
function typeOf(given: JsonObject): { readonly type: KeyType; readonly usage: Usage } {
  const spec = textOf(given, 'KeySpec') ?? textOf(given, 'CustomerMasterKeySpec') ?? 'SYMMETRIC_DEFAULT';
  const type = keyTypes.find((each) => keyTypeFacts[each].awsSpec === spec && each !== 'aes128-gcm');
  if (!type) throw failure('UnsupportedOperationException', `KeySpec ${spec} is not supported here`);
  const given_ = textOf(given, 'KeyUsage');
  if (given_ === undefined && spec !== 'SYMMETRIC_DEFAULT') {
    throw failure(
      'ValidationException',
      'You must specify a KeyUsage value for all KMS keys except for symmetric encryption keys.',
    );
  }
  const usage = wordOf(given, 'KeyUsage', usages, 'ENCRYPT_DECRYPT');
  if (!keyTypeFacts[type].purposes.some(({ aws }) => aws?.usage === usage)) {
    throw failure('ValidationException', `KeyUsage ${usage} is not compatible with KeySpec ${spec}`);
  }
  return { type, usage };
}

function tagsOf(given: unknown): Record<string, string> {
  if (given === undefined || given === null) return {};
  if (!Array.isArray(given)) throw failure('SerializationException');
  const pairs = given.map((each) => {
    const { TagKey, TagValue } = objectOf(each);
    if (typeof TagKey !== 'string' || typeof TagValue !== 'string')
      throw failure('TagException', 'Tags need a TagKey and a TagValue');
    if (TagKey.startsWith('aws:')) throw failure('TagException', 'Tags may not begin with aws:');
    return [TagKey, TagValue] as const;
  });
  if (new Set(pairs.map(([name]) => name)).size !== pairs.length) throw failure('TagException', 'Duplicate tag keys');
  return Object.fromEntries(pairs);
}

const createKey: AwsOperation = {
  fields: {
    Policy: 'text 1-131072',
    Description: 'text 0-8192',
    KeyUsage: 'text',
    CustomerMasterKeySpec: 'text',
    KeySpec: 'text',
    Origin: 'text',
    CustomKeyStoreId: 'text',
    BypassPolicyLockoutSafetyCheck: 'flag',
    Tags: 'list 0-50',
    MultiRegion: 'flag',
    XksKeyId: 'text',
  },
  async run(given, work) {
    const { type, usage } = typeOf(given);
    if (given.MultiRegion === true) throw failure('UnsupportedOperationException', 'there is one region here');
    if (given.CustomKeyStoreId || given.XksKeyId)
      throw failure('UnsupportedOperationException', 'there are no key stores here');
    needDefaultPolicy(given, work.place);
    const origin = wordOf(given, 'Origin', ['AWS_KMS', 'EXTERNAL'] as const, 'AWS_KMS');
    const body = {
      name: work.newName(),
      type,
      uses: usesOf[usage],
      tags: tagsOf(given.Tags),
      deletionAllowed: true,
      ...(origin === 'EXTERNAL' && { origin: 'imported' }),
      ...(textOf(given, 'Description') && { props: { description: given.Description } }),
    };
    const { key } = await work.call({ id: 'createManagedKey', body });
    return { KeyMetadata: metadataOf(objectOf(key), work.place) };
  },
};

const describeKey: AwsOperation = {
  fields: { ...onKey, GrantTokens: 'list 0-10' },
  keys: ['*KeyId'],
  run: async (_given, work) => ({ KeyMetadata: metadataOf(await read(work, keyOf(work)), work.place) }),
};

const getPublicKey: AwsOperation = {
  fields: { ...onKey, GrantTokens: 'list 0-10' },
  keys: ['*KeyId'],
  async run(_given, work) {
    const key = await read(work, keyOf(work));
    const facts = factsOf(key.type);
    if (!facts?.isAsymmetric) throw failure('UnsupportedOperationException');
    if (key.state === 'suspended')
      throw failure('DisabledException', `${keyArn(work.place, String(key.id))} is disabled.`);
    const usage = usageOf(key);
    const versions = key.versions as readonly JsonObject[];
    const primary = versions.find(({ version }) => version === key.primaryVersion) ?? versions[0];
    const pem = String(primary?.publicKey).replace(/-----[A-Z ]+-----|\s/g, '');
    return {
      KeyId: keyArn(work.place, String(key.id)),
      PublicKey: pem,
      CustomerMasterKeySpec: facts.awsSpec,
      KeySpec: facts.awsSpec,
      KeyUsage: usage,
      [algorithmFields[usage]]: facts.purposes.find(({ aws }) => aws?.usage === usage)?.aws?.algorithms ?? [],
    };
  },
};

interface ListedPage {
  readonly items: readonly JsonObject[];
  readonly next: string | undefined;
}

/** One page of managed keys that AWS KMS has a spec for; their number may be smaller than the limit. */
async function listed(given: JsonObject, work: Work, most: number): Promise<ListedPage> {
  const limit = Math.min(numberOf(given, 'Limit') ?? 100, most);
  const cursor = textOf(given, 'Marker');
  const query = { limit: String(limit), secrets: 'false', ...(cursor !== undefined && { cursor }) };
  const { data, pagination } = await work.call({ id: 'listManagedKeys', query }).catch((error) => {
    throw cursor === undefined ? error : failure('InvalidMarkerException');
  });
  const items = (data as readonly JsonObject[]).filter(({ type }) => factsOf(type)?.awsSpec !== undefined);
  return { items, next: textOf(objectOf(pagination), 'nextCursor') };
}

function page({ next }: ListedPage): object {
  return next === undefined ? { Truncated: false } : { Truncated: true, NextMarker: next };
}

const listKeys: AwsOperation = {
  fields: { ...paged, ResourceOwners: 'list' },
  async run(given, work) {
    const found = await listed(given, work, 1000);
    const Keys = found.items.map(({ id }) => ({ KeyId: uuidOf(String(id)), KeyArn: keyArn(work.place, String(id)) }));
    return { Keys, ...page(found) };
  },
};

/** Every name of a key but its id is an alias there; a key that AWS's clients made is named by a UUID. */
function namesOf({ name, displayName, aliases }: JsonObject): string[] {
  const own = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(String(name)) ? [] : [String(displayName)];
  return [...own, ...(aliases as readonly string[])];
}

const listAliases: AwsOperation = {
  fields: { KeyId: 'text 1-2048', ...paged },
  keys: ['?KeyId'],
  async run(given, work) {
    const [key] = work.keys;
    const found: ListedPage = key
      ? { items: [await read(work, key)], next: undefined }
      : await listed(given, work, 100);
    const Aliases = found.items.flatMap((each) =>
      namesOf(each).map((name) => ({
        AliasName: `alias/${name}`,
        AliasArn: aliasArn(work.place, name),
        TargetKeyId: uuidOf(String(each.id)),
        CreationDate: secondsOf(each.createdAt),
        LastUpdatedDate: secondsOf(each.updatedAt),
      })),
    );
    return { Aliases, ...page(found) };
  },
};

/** The name without `alias/`. Throws `InvalidAliasNameException`, `NotAuthorizedException`. */
function aliasOf(given: JsonObject): string {
  const text = textOf(given, 'AliasName') ?? '';
  if (!/^alias\/[a-zA-Z0-9/_-]+$/.test(text) || text.length > 256) {
    throw failure(
      'ValidationException',
      'Alias must start with the prefix "alias/" and have letters, digits, /, _ and - behind it',
    );
  }
  if (text.startsWith('alias/aws/'))
    throw failure('NotAuthorizedException', 'aliases that begin with alias/aws/ are reserved');
  return text.slice(6);
}

function setAlias(isNew: boolean): AwsOperation {
  return {
    fields: { AliasName: 'text! 1-256', TargetKeyId: 'text! 1-2048' },
    keys: ['TargetKeyId'],
    async run(given, work) {
      const alias = aliasOf(given);
      const owner = await work.findNamed(alias);
      if (isNew && owner) {
        throw failure('AlreadyExistsException', `An alias with the name ${aliasArn(work.place, alias)} already exists`);
      }
      if (!isNew && !owner) throw failure('NotFoundException', `Alias ${aliasArn(work.place, alias)} is not found.`);
      const target = keyOf(work);
      if (owner && owner.type !== target.type)
        throw failure('ValidationException', 'an alias moves between keys of one spec');
      await work.call({ id: 'addManagedKeyAlias', params: { key: target.ref }, body: { alias } });
      return undefined;
    },
  };
}

const deleteAlias: AwsOperation = {
  fields: { AliasName: 'text! 1-256' },
  async run(given, work) {
    const alias = aliasOf(given);
    const owner = await work.findNamed(alias);
    if (!owner) throw failure('NotFoundException', `Alias ${aliasArn(work.place, alias)} is not found.`);
    await work.call({ id: 'removeManagedKeyAlias', params: { key: owner.ref, alias } });
    return undefined;
  },
};

function setState(state: 'active' | 'suspended'): AwsOperation {
  return {
    fields: onKey,
    keys: ['KeyId'],
    async run(_given, work) {
      const key = keyOf(work);
      await work.call({ id: 'setManagedKeyState', params: { key: key.ref }, body: { state, used: true } });
      return undefined;
    },
  };
}

const scheduleKeyDeletion: AwsOperation = {
  fields: { ...onKey, PendingWindowInDays: 'number 7-30' },
  keys: ['KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const days = numberOf(given, 'PendingWindowInDays') ?? 30;
    const answer = await work.call({ id: 'deleteManagedKey', params: { key: key.ref }, body: { days, used: true } });
    return {
      KeyId: keyArn(work.place, key.id ?? ''),
      DeletionDate: secondsOf(answer.restorableUntil),
      KeyState: 'PendingDeletion',
      PendingWindowInDays: days,
    };
  },
};

const cancelKeyDeletion: AwsOperation = {
  fields: onKey,
  keys: ['KeyId'],
  async run(_given, work) {
    const key = keyOf(work);
    await work.call({ id: 'restoreManagedKey', params: { id: key.ref } });
    return { KeyId: keyArn(work.place, key.id ?? '') };
  },
};

const updateKeyDescription: AwsOperation = {
  fields: { ...onKey, Description: 'text! 0-8192' },
  keys: ['KeyId'],
  async run(given, work) {
    const key = keyOf(work);
    const { props } = await read(work, key);
    const body = { props: { ...objectOf(props), description: given.Description } };
    await work.call({ id: 'configureManagedKey', params: { key: key.ref }, body });
    return undefined;
  },
};

async function setTags(work: Work, change: (tags: JsonObject) => JsonObject): Promise<undefined> {
  const key = keyOf(work);
  const { tags } = await read(work, key);
  await work.call({ id: 'configureManagedKey', params: { key: key.ref }, body: { tags: change(objectOf(tags)) } });
  return undefined;
}

const tagResource: AwsOperation = {
  fields: { ...onKey, Tags: 'list! 0-50' },
  keys: ['KeyId'],
  run: (given, work) => setTags(work, (tags) => ({ ...tags, ...tagsOf(given.Tags) })),
};

const untagResource: AwsOperation = {
  fields: { ...onKey, TagKeys: 'list! 0-50' },
  keys: ['KeyId'],
  run: (given, work) => {
    const names = new Set(given.TagKeys as readonly unknown[]);
    return setTags(work, (tags) => Object.fromEntries(Object.entries(tags).filter(([name]) => !names.has(name))));
  },
};

const listResourceTags: AwsOperation = {
  fields: { ...onKey, Limit: 'number 1-50', Marker: 'text 1-1024' },
  keys: ['KeyId'],
  async run(_given, work) {
    const { tags } = await read(work, keyOf(work));
    const Tags = Object.entries(objectOf(tags)).map(([TagKey, TagValue]) => ({ TagKey, TagValue }));
    return { Tags, Truncated: false };
  },
};

function setRotation(isOn: boolean): AwsOperation {
  return {
    fields: { ...onKey, RotationPeriodInDays: 'number 90-2560' },
    keys: ['KeyId'],
    async run(given, work) {
      const key = keyOf(work);
      if (factsOf(key.type)?.isAsymmetric) throw failure('UnsupportedOperationException');
      const days = numberOf(given, 'RotationPeriodInDays') ?? 365;
      const body = { rotateAfter: isOn ? days * 86_400 : null };
      await work.call({ id: 'configureManagedKey', params: { key: key.ref }, body });
      return undefined;
    },
  };
}

const getKeyRotationStatus: AwsOperation = {
  fields: onKey,
  keys: ['KeyId'],
  async run(_given, work) {
    const { id, rotateAfter, versions } = await read(work, keyOf(work));
    const KeyId = keyArn(work.place, String(id));
    if (typeof rotateAfter !== 'number') return { KeyRotationEnabled: false, KeyId };
    const [newest] = versions as readonly JsonObject[];
    return {
      KeyRotationEnabled: true,
      KeyId,
      RotationPeriodInDays: Math.round((rotateAfter * 1000) / day),
      NextRotationDate: secondsOf(newest?.createdAt) + rotateAfter,
    };
  },
};

const rotateKeyOnDemand: AwsOperation = {
  fields: onKey,
  keys: ['KeyId'],
  async run(_given, work) {
    const key = keyOf(work);
    if (factsOf(key.type)?.isAsymmetric) throw failure('UnsupportedOperationException');
    await work.call({ id: 'rotateManagedKey', params: { key: key.ref } });
    return { KeyId: keyArn(work.place, key.id ?? '') };
  },
};

const listKeyRotations: AwsOperation = {
  fields: { ...onKey, ...paged, IncludeKeyMaterial: 'text' },
  keys: ['KeyId'],
  async run(_given, work) {
    const { id, versions } = await read(work, keyOf(work));
    const Rotations = (versions as readonly JsonObject[])
      .filter(({ version }) => Number(version) > 1)
      .map(({ createdAt }) => ({
        KeyId: keyArn(work.place, String(id)),
        RotationDate: secondsOf(createdAt),
        RotationType: 'ON_DEMAND',
      }));
    return { Rotations, Truncated: false };
  },
};

function defaultPolicy({ account }: Place): string {
  return JSON.stringify({
    Version: '2012-10-17',
    Id: 'key-default-1',
    Statement: [
      {
        Sid: 'Enable IAM User Permissions',
        Effect: 'Allow',
        Principal: { AWS: `arn:aws:iam::${account}:root` },
        Action: 'kms:*',
        Resource: '*',
      },
    ],
  });
}

/** Permission is given by flags: a policy that said anything else would not hold. */
function needDefaultPolicy(given: JsonObject, place: Place): void {
  const text = textOf(given, 'Policy');
  if (text === undefined) return;
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch {
    throw failure('MalformedPolicyDocumentException', 'the policy is not JSON');
  }
  const wanted: unknown = JSON.parse(defaultPolicy(place));
  const { Statement: given_ } = objectOf(policy);
  const [only] = [given_].flat();
  const [known] = objectOf(wanted).Statement as readonly unknown[];
  const plain = (statement: unknown): string => {
    const { Sid: _, ...rest } = objectOf(statement);
    return JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  if (![given_].flat()[1] && plain(only) === plain(known)) return;
  throw failure(
    'MalformedPolicyDocumentException',
    'permissions are given by flags of API keys here: only the default policy is accepted',
  );
}

const getKeyPolicy: AwsOperation = {
  fields: { ...onKey, PolicyName: 'text 1-128' },
  keys: ['KeyId'],
  async run(_given, work) {
    await read(work, keyOf(work));
    return { Policy: defaultPolicy(work.place), PolicyName: 'default' };
  },
};

const putKeyPolicy: AwsOperation = {
  fields: { ...onKey, Policy: 'text! 1-131072', PolicyName: 'text', BypassPolicyLockoutSafetyCheck: 'flag' },
  keys: ['KeyId'],
  async run(given, work) {
    await read(work, keyOf(work));
    needDefaultPolicy(given, work.place);
    return undefined;
  },
};

/** Answers that say there is nothing, to a caller who may read the key. */
function nothing(answer: object): AwsOperation {
  return {
    fields: { ...onKey, ...paged },
    keys: ['KeyId'],
    async run(_given, work) {
      await read(work, keyOf(work));
      return answer;
    },
  };
}

function refused(type: string, message: string): AwsOperation {
  return {
    fields: {},
    async run() {
      throw failure(type, message);
    },
  };
}

const noGrants = 'there are no grants: permissions are given by flags of API keys';
const noStores = 'there are no custom key stores here';
const noRegions = 'there is one region here';

const getKeyLastUsage: AwsOperation = {
  fields: onKey,
  keys: ['KeyId'],
  async run(_given, work) {
    const key = keyOf(work);
    const { dependents } = await work.call({ id: 'listManagedKeyDependents', params: { key: key.ref } });
    const [last] = dependents as readonly JsonObject[];
    return {
      KeyId: keyArn(work.place, key.id ?? ''),
      ...(last && { KeyLastUsage: { LastUsedDate: secondsOf(last.lastUsedAt), Operation: last.operation } }),
    };
  },
};

export const keyOperations: Readonly<Record<string, AwsOperation>> = {
  CreateKey: createKey,
  DescribeKey: describeKey,
  ListKeys: listKeys,
  GetPublicKey: getPublicKey,
  EnableKey: setState('active'),
  DisableKey: setState('suspended'),
  ScheduleKeyDeletion: scheduleKeyDeletion,
  CancelKeyDeletion: cancelKeyDeletion,
  UpdateKeyDescription: updateKeyDescription,
  CreateAlias: setAlias(true),
  UpdateAlias: setAlias(false),
  DeleteAlias: deleteAlias,
  ListAliases: listAliases,
  TagResource: tagResource,
  UntagResource: untagResource,
  ListResourceTags: listResourceTags,
  EnableKeyRotation: setRotation(true),
  DisableKeyRotation: setRotation(false),
  GetKeyRotationStatus: getKeyRotationStatus,
  RotateKeyOnDemand: rotateKeyOnDemand,
  ListKeyRotations: listKeyRotations,
  GetKeyPolicy: getKeyPolicy,
  PutKeyPolicy: putKeyPolicy,
  ListKeyPolicies: nothing({ PolicyNames: ['default'], Truncated: false }),
  ListGrants: nothing({ Grants: [], Truncated: false }),
  ListRetirableGrants: { fields: paged, run: async () => ({ Grants: [], Truncated: false }) },
  CreateGrant: refused('UnsupportedOperationException', noGrants),
  RevokeGrant: refused('NotFoundException', noGrants),
  RetireGrant: refused('NotFoundException', noGrants),
  GetKeyLastUsage: getKeyLastUsage,
  DescribeCustomKeyStores: { fields: paged, run: async () => ({ CustomKeyStores: [], Truncated: false }) },
  CreateCustomKeyStore: refused('UnsupportedOperationException', noStores),
  ConnectCustomKeyStore: refused('UnsupportedOperationException', noStores),
  DisconnectCustomKeyStore: refused('UnsupportedOperationException', noStores),
  UpdateCustomKeyStore: refused('UnsupportedOperationException', noStores),
  DeleteCustomKeyStore: refused('UnsupportedOperationException', noStores),
  ReplicateKey: refused('UnsupportedOperationException', noRegions),
  UpdatePrimaryRegion: refused('UnsupportedOperationException', noRegions),
};
