// The parameters of an operation, in its path and its query.
import type { z } from 'zod';
import { sample } from '../api/example-values.ts';
import { defaultLimit } from '../api/page.ts';
import type { Declared } from './declared.ts';
import { exampleOf } from './examples.ts';
import type { Schemas } from './schemas.ts';
import type { JsonSchema, Parameter } from './types.ts';

/** What a path parameter is, where its endpoint says nothing else. */
const usual: Readonly<Record<string, { readonly description: string; readonly example: string }>> = {
  ringname: { description: 'name of the KeyRing; with `id=true` its id', example: 'payroll' },
  keyId: { description: 'id of the key', example: sample.keyId },
  hash: { description: 'the hash of an encrypt', example: sample.hash },
  header: { description: 'the header of an encrypt', example: sample.header },
  apikeyid: { description: 'id of the API key', example: sample.apikeyId },
};

export function parametersOf({ endpoint, note, path }: Declared, schemas: Schemas): readonly Parameter[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const inPath = names.map((name): Parameter => {
    const said = note.params?.[name] ?? usual[name];
    if (!said) throw new Error(`${endpoint.id}: the path parameter ${name} is not described`);
    return {
      name,
      in: 'path',
      description: said.description,
      required: true,
      schema: { type: 'string' },
      example: said.example,
    };
  });
  return [...inPath, ...queryOf(endpoint.query, schemas, endpoint.id)];
}

function queryOf(query: z.ZodObject | undefined, schemas: Schemas, place: string): Parameter[] {
  if (!query) return [];
  const { properties = {}, required = [] } = schemas.of(query, 'input', `${place}.query`);
  return Object.entries(properties).map(([name, property]): Parameter => {
    const { description = '', examples, ...schema } = property;
    const example =
      name === 'limit' ? defaultLimit : (examples?.[0] ?? exampleOf(property, schemas, `${place}.query.${name}`));
    return {
      name,
      in: 'query',
      description,
      required: required.includes(name),
      schema: name === 'limit' ? limit() : schema,
      example,
    };
  });
}

/** The server reads digits, which is the text of an integer. */
function limit(): JsonSchema {
  return { type: 'integer', minimum: 1, default: defaultLimit };
}
