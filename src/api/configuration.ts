// Configuration files, from which `kms apply` makes objects: the fields of each kind, put together from the bodies of
// the endpoints that make and change them, the check of an object against them, and the JSON Schema of the files.
import { z } from 'zod';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { mostProofs } from '../model/proof-limits.ts';
import { type EndpointId, type EndpointOf, endpoints } from './endpoints.ts';
import { problemOf, valueAt } from './input-problems.ts';
import { tenantEndpoints } from './local/tenants.ts';
import { kindOf, only } from './values.ts';

/** The body that the endpoint validates requests with. */
function bodyOf<Id extends EndpointId>(id: Id): EndpointOf<Id> extends { readonly body: infer B } ? B : never {
  const endpoint = endpoints.find((each) => each.id === id);
  // Cast: the endpoint with this id has the type that its id names.
  return (endpoint as unknown as { body: never }).body;
}

const newAccount = bodyOf('createAccount').shape;
const newApiKey = bodyOf('createApiKey').shape;
const changedApiKey = bodyOf('updateApiKey').shape;
const newProof = bodyOf('addProof').shape;
const newUser = bodyOf('inviteUser').shape;
const newRing = bodyOf('createKeyring').shape;
const ringConfig = bodyOf('putConfig').shape.config.shape;
const newKey = bodyOf('createManagedKey').shape;
const newRule = bodyOf('createApprovalRule').shape;
const keyConfig = bodyOf('configureManagedKey').shape;
const limitNames = tenantEndpoints.flatMap((each) => (each.id === 'limitTenant' ? Object.keys(each.body.shape) : []));

const { kind: _, ...proofFields } = newProof;
const proofKinds = ['aws', 'certificate', 'jwt'] as const;
const proof = only({
  kind: z.enum(proofKinds).meta({ description: 'what proves the API key', examples: ['jwt'] }),
  ...proofFields,
  fingerprint: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'expected SHA-256 in hex')
    .exactOptional()
    .meta({
      description:
        'for `certificate`: stands for a pinned certificate that the key already has; exported files contain it',
      examples: ['8a1f…'],
    }),
});
const limit = z
  .int()
  .min(0)
  .nullable()
  .exactOptional()
  .meta({ description: 'how many there may be; `null`: any number', examples: [1000] });

interface KindSchema {
  readonly about: string;
  readonly name: z.ZodType;
  readonly fields: z.ZodObject;
}

const configurationKinds = {
  'tenant-limits': {
    about: 'how much a tenant may have, by its name; for the administrator at the machine alone',
    name: z
      .string()
      .min(1)
      .meta({ description: 'the name of the tenant', examples: ['default'] }),
    fields: only(Object.fromEntries(limitNames.map((name) => [name, limit]))),
  },
  account: {
    about: 'an account, which owns API keys; its name is the uid',
    name: newAccount.uid,
    fields: only({ notes: newAccount.notes, props: newAccount.props }),
  },
  keyring: {
    about: 'a keyring, whose keys are wrapped to a public key that the file gives',
    name: newRing.name,
    fields: only({
      publicKey: newRing.publicKey,
      kem: newRing.kem,
      props: newRing.props,
      keyProps: newRing.keyProps,
      config: only({
        algos: ringConfig.algos,
        rotateAfter: ringConfig.rotateAfter,
        offlineDecrypt: ringConfig.offlineDecrypt,
      })
        .exactOptional()
        .meta({ description: 'its configuration' }),
    }),
  },
  'managed-key': {
    about: 'a key that the appliance holds and works with',
    name: newKey.name,
    fields: only({
      type: newKey.type,
      uses: newKey.uses,
      aliases: newKey.aliases,
      derived: newKey.derived,
      exportable: newKey.exportable,
      origin: newKey.origin,
      rotateAfter: newKey.rotateAfter,
      deletionAllowed: newKey.deletionAllowed,
      minDecryptVersion: keyConfig.minDecryptVersion,
      minEncryptVersion: keyConfig.minEncryptVersion,
      tags: newKey.tags,
      props: newKey.props,
      activateAt: newKey.activateAt,
      deactivateAt: newKey.deactivateAt,
      state: z
        .enum(['pre-active', ...bodyOf('setManagedKeyState').shape.state.options])
        .exactOptional()
        .meta({
          description: 'the state apart from its dates: once `activateAt` or `deactivateAt` has passed, it decides',
          examples: ['suspended'],
        }),
    }),
  },
  user: {
    about: 'a person who logs in, invited when new; its name is the user name',
    name: newUser.username,
    fields: only({
      email: newUser.email.exactOptional(),
      firstName: newUser.firstName.exactOptional(),
      lastName: newUser.lastName.exactOptional(),
      flags: newUser.flags,
      props: newUser.props,
    }),
  },
  apikey: {
    about: 'an API key, with which a program authenticates; its secret is in no file',
    name: newApiKey.name.unwrap().refine((name) => name !== '', 'must not be empty'),
    fields: only({
      accountId: newApiKey.accountId
        .exactOptional()
        .meta({ description: 'the uid of the account that it belongs to', examples: ['billing'] }),
      flags: newApiKey.flags,
      props: newApiKey.props,
      active: changedApiKey.active,
      expiresAt: newApiKey.expiresAt,
      allowedAddresses: newApiKey.allowedAddresses,
      secret: z
        .boolean()
        .exactOptional()
        .meta({
          description: '`false`: it has no secret, only proofs; default: `true`',
          examples: [false],
        }),
      proofs: z
        .array(proof)
        .max(mostProofs)
        .exactOptional()
        .meta({ description: 'its proofs besides the secret: exactly these' }),
    }),
  },
  rule: {
    about: 'an approval rule: which actions need approval, and by whom',
    name: newRule.name,
    fields: only({
      actions: newRule.actions.exactOptional(),
      objects: newRule.objects,
      approvers: newRule.approvers.exactOptional(),
      count: newRule.count,
      selfApproval: newRule.selfApproval,
      mode: newRule.mode,
      window: newRule.window,
      breakers: newRule.breakers,
      expires: newRule.expires,
      props: newRule.props,
    }),
  },
} as const satisfies Readonly<Record<string, KindSchema>>;

export type KindName = keyof typeof configurationKinds;

export function isKindName(name: string): name is KindName {
  return Object.hasOwn(configurationKinds, name);
}

/** A problem of an object in a file; `known` are the fields that there are where one is unknown. */
export interface FileProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly known?: readonly string[];
}

/** Fields that every object has. */
const ownFields = ['kind', 'name'];

/** Problems of an object of this kind, as a file has it. */
export function fileProblems(kind: KindName, object: Readonly<Record<string, unknown>>): readonly FileProblem[] {
  const { name, fields }: KindSchema = configurationKinds[kind];
  const { kind: _, ...rest } = object;
  const schema = z.object({ ...fields.shape, name }).strict();
  const known = [...ownFields, ...Object.keys(fields.shape)];
  const issues = schema.safeParse(rest).error?.issues ?? [];
  const problems = issues.flatMap((issue) => problemsOf(issue, rest, known));
  return problems.length > 0 ? problems : patternProblems(schema.shape, rest);
}

function problemsOf(issue: z.core.$ZodIssue, value: unknown, known: readonly string[]): FileProblem[] {
  // Paths of parsed JSON have no symbols.
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  const given = valueAt(value, path);
  const odd = path.join() === 'flags' && isJsonObject(given) ? oddlyGranted(given) : [];
  if (odd.length > 0) return odd;
  if (issue.code !== 'unrecognized_keys')
    return [{ path, message: `${problemOf(issue, given)}${unitFor(issue, given)}` }];
  const names = path.length === 0 ? known : knownIn(issue.message);
  return issue.keys.map((key) => ({ path: [...path, key], message: 'unknown field', known: names }));
}

/** Problems of flags that are neither granted nor not: requests are told of the set as a whole. */
function oddlyGranted(flags: JsonObject): FileProblem[] {
  const odd = Object.entries(flags).filter(([, granted]) => typeof granted !== 'boolean');
  return odd.map(([name, granted]) => ({
    path: ['flags', name],
    message: `expected true or false, got ${kindOf(granted)}`,
  }));
}

/** The unit that is expected, where a text stands for a number that is a time or an age. */
function unitFor({ code }: z.core.$ZodIssue, given: unknown): string {
  if (code !== 'invalid_type' || typeof given !== 'string') return '';
  if (/^\d{4}-\d\d-\d\d/.test(given)) return ': a time is in milliseconds since 1970-01-01T00:00:00Z';
  return /^\d+ ?(?:s|m|h|d|w|y)/.test(given) ? ': an age is in seconds' : '';
}

/** The names in the message of `only`. */
function knownIn(message: string): readonly string[] {
  return /expected (.+)$/.exec(message)?.[1]?.split(', ') ?? [];
}

function metaOf(schema: unknown): z.core.GlobalMeta | undefined {
  return schema instanceof z.ZodType ? schema.meta() : undefined;
}

/** Problems of texts that break the pattern or exceed the length in the API's description. */
function patternProblems(shape: Readonly<Record<string, z.ZodType>>, value: Readonly<Record<string, unknown>>) {
  return Object.entries(value).flatMap(([field, text]): FileProblem[] => {
    const schema = shape[field];
    const meta = schema?.meta() ?? (schema instanceof z.ZodExactOptional && metaOf(schema.unwrap()));
    const { pattern, maxLength, description } = meta || {};
    if (typeof text !== 'string') return [];
    const isLong = typeof maxLength === 'number' && [...text].length > maxLength;
    const isOdd = typeof pattern === 'string' && !new RegExp(pattern, 'u').test(text);
    if (isLong) return [{ path: [field], message: `has at most ${maxLength} characters` }];
    return isOdd ? [{ path: [field], message: `does not have the right form: ${description}` }] : [];
  });
}

/** The JSON Schema (draft 7, which editors know best) of a document in a file. */
export function configurationSchema(): Readonly<Record<string, unknown>> {
  const kinds = Object.entries<KindSchema>(configurationKinds);
  const definitions = new Map<string, unknown>();
  for (const [kind, { about, name, fields }] of kinds) {
    const object = z.object({ kind: z.literal(kind), name, ...fields.shape }).strict();
    const options = { io: 'input', unrepresentable: 'any', target: 'draft-7' } as const;
    // Schemas with an id come along, and are the same for every kind.
    const { $schema: _, definitions: shared = {}, ...schema } = z.toJSONSchema(object, options);
    for (const [id, each] of Object.entries(Object(shared))) definitions.set(id, each);
    definitions.set(kind, { description: about, ...schema });
  }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration of kms',
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
    then: { items: { $ref: '#/definitions/object' } },
    else: { $ref: '#/definitions/object' },
    definitions: { object: objectSchema(kinds), ...Object.fromEntries(definitions) },
  };
}

/** An object of any kind; its own schema follows from its kind, so that an editor names the field that is wrong. */
function objectSchema(kinds: readonly (readonly [string, KindSchema])[]) {
  return {
    type: 'object',
    required: ['kind', 'name'],
    properties: { kind: { enum: kinds.map(([kind]) => kind), description: 'what it is' } },
    allOf: kinds.map(([kind]) => ({
      if: { properties: { kind: { const: kind } }, required: ['kind'] },
      // biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
      then: { $ref: `#/definitions/${kind}` },
    })),
  };
}
