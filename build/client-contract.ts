// Types of the client's methods written out in full, from the endpoint declarations, so that a user of the package sees
// them in the editor without the schemas behind them. They replace the compiler's output for src/client/methods.ts.
import type { z } from 'zod';
import { account } from '../src/api/accounts.ts';
import { activity } from '../src/api/activity.ts';
import { fullApiKey, safeApiKey } from '../src/api/apikeys.ts';
import { asset } from '../src/api/assets.ts';
import { asymKey, asymKeyring } from '../src/api/asym.ts';
import type { Access, Endpoint } from '../src/api/endpoint.ts';
import { endpoints } from '../src/api/endpoints.ts';
import { key, keyListItem, keyring, keyringConfig } from '../src/api/keyrings.ts';
import { passwordValidation } from '../src/api/logins.ts';
import { pageInfo } from '../src/api/page.ts';
import { clientPaths } from '../src/api/paths.ts';
import { user } from '../src/api/users.ts';
import { codeOfStatus } from '../src/client/failure.ts';

const named: Readonly<Record<string, z.ZodObject>> = {
  Account: account,
  Activity: activity,
  Asset: asset,
  AsymKey: asymKey,
  AsymKeyRing: asymKeyring,
  FullApiKey: fullApiKey,
  Key: key,
  KeyListItem: keyListItem,
  KeyRing: keyring,
  KeyRingConfig: keyringConfig,
  PageInfo: pageInfo,
  PasswordValidation: passwordValidation,
  SafeApiKey: safeApiKey,
  User: user,
};
/** Keyed by definition, which a schema shares with a copy of it that has another description. */
const names = new Map(Object.entries(named).map(([name, schema]) => [schema.def, name]));

/** The text of methods.d.ts. */
export function clientContract(): string {
  const interfaces = Object.entries(named).map(
    ([name, schema]) => `export interface ${name} ${block(schema.shape, '')}`,
  );
  const declared = new Map<string, Endpoint>(endpoints.map((each) => [each.id, each]));
  const methods = Object.keys(clientPaths).map((id) => {
    const endpoint = declared.get(id);
    if (!endpoint) throw new Error(`the client has a method ${id}, and no endpoint is declared under that name`);
    return method(endpoint);
  });
  return [
    '// Made from the declarations of the endpoints.',
    `export interface CallOptions {\n  /** Ends this call: it rejects with the signal's reason. */\n  readonly signal?: AbortSignal;\n}`,
    `/** A method for each endpoint. Each rejects with a \`KmsError\`. */\nexport interface Client {\n${methods.join('\n')}\n}`,
    '/** What the method `Id` takes: path parameters, query parameters and fields of the body in one object. */\n' +
      'export type InputOf<Id extends keyof Client> = NonNullable<Parameters<Client[Id]>[0]>;',
    '/** What the method `Id` answers. */\nexport type AnswerTo<Id extends keyof Client> = Awaited<ReturnType<Client[Id]>>;',
    ...interfaces,
    '',
  ].join('\n\n');
}

function method(endpoint: Endpoint): string {
  const shape = { ...endpoint.params?.shape, ...endpoint.query?.shape, ...endpoint.body?.shape };
  const isOptional = Object.values(shape).every((schema) => (schema as z.ZodType).def.type === 'optional');
  const input = Object.keys(shape).length === 0 ? 'Record<never, never>' : block(shape, '  ');
  const signature = `(input${isOptional ? '?' : ''}: ${input}, options?: CallOptions) => Promise<${typeOf(endpoint.answer, '  ')}>`;
  return `${comment(about(endpoint), '  ')}  readonly ${endpoint.id}: ${signature};\n`;
}

function about({ summary, method, path, access, errors = {} }: Endpoint): string[] {
  const failures = Object.entries(errors).map(([status, { description }]) => {
    const code = codeOfStatus[Number(status)] ?? 'internal';
    return `Fails with \`${code}\` (${status}): ${description}.`;
  });
  return [`${summary}.`, '', `\`${method} ${path}\`, ${who(access)}.`, ...failures];
}

function who(access: Access): string {
  if (access.kind === 'public') return 'for everybody';
  if (access.kind === 'credential') return 'for every credential';
  const flag = access.ring ? access.action.replace('.', '.<ringname>.') : access.action;
  return `needs the flag \`${flag}\`${access.orSelf === undefined ? '' : ', or to be that user'}`;
}

function block(shape: Readonly<Record<string, unknown>>, indent: string): string {
  const inner = `${indent}  `;
  const lines = Object.entries(shape).map(([name, each]) => {
    const schema = each as z.ZodType; // an object's shape holds only schemas
    const description = schema.meta()?.description ?? optionalInner(schema).meta()?.description;
    const mark = schema.def.type === 'optional' ? '?' : '';
    const doc = description === undefined ? '' : comment([description], inner);
    return `${doc}${inner}${name}${mark}: ${typeOf(optionalInner(schema), inner)};`;
  });
  return lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n')}\n${indent}}`;
}

function optionalInner(schema: z.ZodType): z.ZodType {
  const def = definitionOf(schema);
  return def.type === 'optional' ? (def.innerType as z.ZodType) : schema; // made by zod itself
}

/** The schema's definition, typed as a union of zod's known kinds. */
function definitionOf(schema: z.ZodType) {
  return schema._zod.def as z.core.$ZodTypes['_zod']['def'];
}

function typeOf(schema: z.ZodType, indent: string): string {
  const name = names.get(schema.def as z.ZodObject['def']);
  if (name !== undefined) return name;
  const { type, enum: values, additionalProperties, items } = schema.meta() ?? {};
  // Typed as the number it stands for, although it is sent as text.
  if (type === 'integer') return 'number';
  // Such lists are validated by hand, so that a long one costs no more than its limit.
  if (type === 'array') return `${listedType(items)}[]`;
  if (Array.isArray(values) && values.length > 0 && values.every(isTruth)) return 'boolean';
  const def = definitionOf(schema);
  const inside = (each: z.core.$ZodType): string => typeOf(each as z.ZodType, indent);
  switch (def.type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'unknown':
      return def.type;
    case 'enum':
      return Object.values(def.entries).map(quoted).join(' | ');
    case 'literal':
      return def.values.map(quoted).join(' | ');
    case 'array':
      return `${parenthesised(inside(def.element))}[]`;
    case 'object':
      return block(def.shape, indent);
    case 'record':
      return `Record<string, ${inside(def.valueType)}>`;
    case 'union':
      return def.options.map(inside).join(' | ');
    case 'nullable':
      return `${inside(def.innerType)} | null`;
    case 'custom':
      return `Record<string, ${isOfBooleans(additionalProperties) ? 'boolean' : 'unknown'}>`;
    default:
      throw new Error(`no type is known for a schema of the kind ${def.type}`);
  }
}

function isTruth(value: unknown): boolean {
  return value === 'true' || value === 'false';
}

function isOfBooleans(properties: unknown): boolean {
  return typeof properties === 'object' && properties !== null && 'type' in properties && properties.type === 'boolean';
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function parenthesised(type: string): string {
  return type.includes(' | ') && !type.startsWith('{') ? `(${type})` : type;
}

/** The element type of a list that is validated by hand: objects of simple fields, words, numbers, or texts. */
function listedType(items: unknown): string {
  const {
    type,
    properties,
    required = [],
    enum: words,
  } = (items ?? {}) as {
    readonly type?: string;
    readonly enum?: readonly string[];
    readonly properties?: Readonly<Record<string, { readonly type: string }>>;
    readonly required?: readonly string[];
  };
  if (words) return parenthesised(words.map(quoted).join(' | '));
  if (!properties) return type === 'integer' ? 'number' : 'string';
  const fields = Object.entries(properties).map(([name, field]) => {
    const simple = field.type === 'integer' ? 'number' : field.type;
    return required.includes(name) ? `${name}: ${simple}` : `${name}?: ${simple} | undefined`;
  });
  return `{ ${fields.join('; ')} }`;
}

function comment(lines: readonly string[], indent: string): string {
  const [only] = lines;
  if (lines.length === 1) return `${indent}/** ${only} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} *${line && ` ${line}`}\n`).join('')}${indent} */\n`;
}
