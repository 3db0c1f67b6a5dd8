// Answer shapes that the client checks responses against, derived from the endpoint declarations. `node
// build/answer-shapes.ts` writes src/client/answer-shapes.ts; a test keeps the two in agreement.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import type { Endpoint } from '../src/api/endpoint.ts';
import { endpoints } from '../src/api/endpoints.ts';
import { clientPaths } from '../src/api/paths.ts';
import { textKinds } from '../src/client/answers.ts';

interface Shapes {
  readonly answerShapes: Readonly<Record<string, string>>;
  /** Objects that several answers share or nest, by name. */
  readonly things: Readonly<Record<string, string>>;
}

/** The parts of a schema's description that decide how a text is checked. */
interface Described {
  readonly pattern?: string;
  readonly format?: string;
}

export function shapesOfAnswers(): Shapes {
  const things = new Map<string, string>();
  const declared = new Map<string, Endpoint>(endpoints.map((each) => [each.id, each]));
  const answerShapes = Object.keys(clientPaths).map((id) => {
    const endpoint = declared.get(id);
    if (!endpoint) throw new Error(`the client has a method ${id}, and no endpoint is declared under that name`);
    const name = capital(id);
    const fields = fieldsOf(objectIn(endpoint.answer), name, things);
    return [id, fields];
  });
  return { answerShapes: Object.fromEntries(answerShapes), things: Object.fromEntries(things) };
}

function fieldsOf(schema: z.ZodObject, name: string, things: Map<string, string>): string {
  const fields = Object.entries(schema.shape).map(([field, each]) => {
    let inner = definitionOf(each as z.ZodType); // an object's shape holds only schemas
    let [optional, list, nullable] = ['', '', ''];
    let about: Described = {};
    for (;;) {
      about = { ...inner.schema.meta(), ...about };
      const { def } = inner;
      if (def.type === 'optional') optional = '?';
      else if (def.type === 'nullable') nullable = '|null';
      else if (def.type === 'array' && list === '') list = '[]';
      else break;
      inner = definitionOf((def.type === 'array' ? def.element : def.innerType) as z.ZodType); // made by zod itself
    }
    return `${field}${optional}:${kindOf(inner, about, `${name}${capital(field)}`, things)}${list}${nullable}`;
  });
  return fields.join(' ');
}

function definitionOf(schema: z.ZodType) {
  return { schema, def: schema._zod.def as z.core.$ZodTypes['_zod']['def'] }; // narrowed to zod's known kinds
}

function kindOf(
  { schema, def }: ReturnType<typeof definitionOf>,
  about: Described,
  name: string,
  things: Map<string, string>,
): string {
  switch (def.type) {
    case 'string':
      return textKind(about);
    case 'number':
      return Number((schema as z.ZodNumber).minValue) >= 0 ? 'count' : 'integer'; // as its type says
    case 'boolean':
      return 'boolean';
    case 'enum':
      return 'word';
    case 'literal':
      return def.values.every((value) => typeof value === 'string') ? 'word' : 'boolean';
    case 'union':
      return 'wordOrCount';
    case 'custom':
      return 'object';
    case 'object': {
      const object = objectIn(schema);
      const thing = schema.meta()?.id ?? name;
      const shape = fieldsOf(object, thing, things);
      const [known] = [...things].find(([, other]) => other === shape) ?? [];
      if (known !== undefined) return known;
      if (things.has(thing)) throw new Error(`two things are called ${thing}`);
      things.set(thing, shape);
      return thing;
    }
    default:
      throw new Error(`the client has no check for an answer with a ${def.type} in it`);
  }
}

/** The kind of text check, derived from the schema's description. */
function textKind({ pattern, format }: Described): string {
  if (format !== undefined) return { 'date-time': 'time', date: 'day', uri: 'uri' }[format] ?? unknown(format);
  if (pattern === undefined) return 'text';
  const [, prefix] = /^\^([a-z]+_)\[0-9a-hjkmnp-tv-z\]\{26\}\$$/.exec(pattern) ?? [];
  if (prefix !== undefined) return prefix;
  // Names and addresses of people.
  if (pattern.startsWith('^[^\\s')) return 'line';
  const [kind] = Object.entries(textKinds).find(([, each]) => new RegExp(pattern).source === each.source) ?? [];
  return kind ?? unknown(pattern);
}

function unknown(what: string): never {
  throw new Error(`the client has no check for texts of ${what}`);
}

function objectIn(schema: z.ZodType): z.ZodObject {
  if (schema._zod.def.type === 'object') return schema as z.ZodObject; // as its type says
  throw new Error('an answer of the client is an object');
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

if (import.meta.main) {
  const { answerShapes, things } = shapesOfAnswers();
  const file = fileURLToPath(new URL('../src/client/answer-shapes.ts', import.meta.url));
  const table = (shapes: Shapes['things']) =>
    Object.entries(shapes)
      .map(([name, shape]) => `${name}: ${lines(shape)},\n`)
      .join('');
  const text = `// Shapes of the answers to the client's methods, from the endpoints' declarations; made by build/answer-shapes.ts. A
// field is a name and a kind of answers.ts, or a nested object; \`?\` may be absent, \`[]\` is a list, \`|null\` may be null.
import type { ClientEndpointId } from '../api/paths.ts';

/** Objects used in several answers, or nested in one. */
export const things: Readonly<Record<string, string>> = {
${table(things)}};

export const answerShapes: Readonly<Record<ClientEndpointId, string>> = {
${table(answerShapes)}};
`;
  writeFileSync(file, text);
  execFileSync(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'format', '--write', file]);
}

/** A template literal whose lines stay within `most` characters. */
function lines(shape: string, most = 108): string {
  const rows: string[] = [];
  for (const field of shape.split(' ')) {
    const last = rows.at(-1);
    if (last !== undefined && last.length + field.length < most) rows[rows.length - 1] = `${last} ${field}`;
    else rows.push(field);
  }
  return rows.length > 1 ? `\`\n    ${rows.join('\n    ')}\`` : `'${rows[0]}'`;
}
