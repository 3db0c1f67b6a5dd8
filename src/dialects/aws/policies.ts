// Key policies and grants in AWS KMS. Here flags of API keys decide, so that the default policy is the only one, and
// there are no grants.
import { isJsonObject, type JsonObject, jsonOf, nestsWithin, sameJson } from '../../model/json.ts';
import { failure } from './errors.ts';
import { textOf } from './fields.ts';
import { keyOf } from './found-keys.ts';
import type { Place } from './names.ts';
import type { AwsOperation, Work } from './operation.ts';

function defaultPolicy({ account }: Place): JsonObject {
  return {
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
  };
}

/** The parts of a policy that say what is allowed, in one form. */
function meaningOf(policy: unknown): unknown {
  if (!isJsonObject(policy)) return undefined;
  const { Statement, Version } = policy;
  const statements: unknown[] = Array.isArray(Statement) ? Statement : [Statement];
  return {
    Version,
    Statement: statements.map((statement) => {
      if (!isJsonObject(statement)) return statement;
      const { Sid: _, ...rest } = statement;
      return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, oneOf(value)]));
    }),
  };
}

/** Levels: what follows recurses. The default policy has four. */
const deepestPolicy = 32;

/** A list of one is what its item is. */
function oneOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 1 ? value[0] : value;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, oneOf(each)]));
}

/** Throws `MalformedPolicyDocumentException` for a policy that would say anything else: it would not hold. */
export function needDefaultPolicy(text: string | undefined, place: Place): void {
  if (text === undefined) return;
  const policy = jsonOf(text);
  if (policy === undefined) throw failure('MalformedPolicyDocumentException', 'The policy is not JSON.');
  if (!nestsWithin(policy, deepestPolicy)) {
    throw failure('MalformedPolicyDocumentException', `The policy nests deeper than ${deepestPolicy} levels.`);
  }
  if (sameJson(meaningOf(policy), meaningOf(defaultPolicy(place)))) return;
  throw failure(
    'MalformedPolicyDocumentException',
    'Permissions are given by flags of API keys here: only the default policy is accepted.',
  );
}

function needDefaultName(given: JsonObject): void {
  const name = textOf(given, 'PolicyName') ?? 'default';
  if (name !== 'default') throw failure('NotFoundException', 'No such policy exists');
}

const ofKey = { keys: ['KeyId'], about: 'getManagedKey' } as const;

/** Answers a caller who may read the key. */
function told(answer: (given: JsonObject, work: Work) => object | undefined): AwsOperation {
  return {
    ...ofKey,
    plan: (given, work) => ({
      id: 'getManagedKey',
      params: { key: keyOf(work).ref },
      answer: () => answer(given, work),
    }),
  };
}

const getKeyPolicy = told((given, { place }) => {
  needDefaultName(given);
  return { Policy: JSON.stringify(defaultPolicy(place)), PolicyName: 'default' };
});

/** Changes nothing, and wants the flag all the same that a change would take. */
const putKeyPolicy: AwsOperation = {
  keys: ['KeyId'],
  about: 'configureManagedKey',
  plan(given, work) {
    needDefaultName(given);
    needDefaultPolicy(textOf(given, 'Policy'), work.place);
    return { id: 'configureManagedKey', params: { key: keyOf(work).ref }, body: {}, answer: () => undefined };
  },
};

const noGrants = 'There are no grants here: permissions are given by flags of API keys.';

function refused(type: string, message: string, base: Pick<AwsOperation, 'keys' | 'about'> = {}): AwsOperation {
  return {
    ...base,
    plan() {
      throw failure(type, message);
    },
  };
}

const retireGrant: AwsOperation = {
  keys: ['?KeyId'],
  about: 'getManagedKey',
  plan(given) {
    throw failure(given.GrantToken === undefined ? 'NotFoundException' : 'InvalidGrantTokenException', noGrants);
  },
};

const nowhere = (answer: object): AwsOperation => ({ plan: () => ({ told: answer }) });
const noStores = 'There are no custom key stores here.';
const noRegions = 'There is one region here.';
const unsupported = 'UnsupportedOperationException';

export const policyOperations = {
  GetKeyPolicy: getKeyPolicy,
  PutKeyPolicy: putKeyPolicy,
  ListKeyPolicies: told(() => ({ PolicyNames: ['default'], Truncated: false })),
  ListGrants: told(() => ({ Grants: [], Truncated: false })),
  ListRetirableGrants: nowhere({ Grants: [], Truncated: false }),
  CreateGrant: refused(unsupported, noGrants, ofKey),
  RevokeGrant: refused('NotFoundException', noGrants, ofKey),
  RetireGrant: retireGrant,
  ReplicateKey: refused(unsupported, noRegions, ofKey),
  UpdatePrimaryRegion: refused(unsupported, noRegions, ofKey),
  DescribeCustomKeyStores: nowhere({ CustomKeyStores: [], Truncated: false }),
  CreateCustomKeyStore: refused(unsupported, noStores),
  ConnectCustomKeyStore: refused('CustomKeyStoreNotFoundException', noStores),
  DisconnectCustomKeyStore: refused('CustomKeyStoreNotFoundException', noStores),
  UpdateCustomKeyStore: refused('CustomKeyStoreNotFoundException', noStores),
  DeleteCustomKeyStore: refused('CustomKeyStoreNotFoundException', noStores),
  Encapsulate: refused(unsupported, 'ML-KEM keys are not supported here.', { ...ofKey, keys: ['*KeyId'] }),
  Decapsulate: refused(unsupported, 'ML-KEM keys are not supported here.', { ...ofKey, keys: ['*KeyId'] }),
} as const;
