// The API description: an OpenAPI 3.1 document generated from the endpoint declarations, their schemas and their notes.
// It is generated when the executable is built; a server that runs from the sources does it on the first request.

import type { z } from 'zod';
import { sample } from '../api/example-values.ts';
import { defaultLimit } from '../api/page.ts';
import { base64urlPattern, ringNamePattern } from '../api/values.ts';
import { flagTable } from '../model/flags.ts';
import { type DescribedEndpoint, describedEndpoints, requiredFlag, whoMay } from './described-endpoints.ts';
import { guide, tags } from './guide.ts';
import type { JsonSchema, OpenApiDocument, Operation, Parameter } from './openapi.ts';
import { toMarkdown } from './prose.ts';
import { responsesOf, sharedHeaders, sharedResponses } from './responses.ts';
import { exampleOf, Schemas } from './schemas.ts';

export function openApiDocument(version: string): OpenApiDocument {
  const schemas = new Schemas();
  const paths: Record<string, Record<string, Operation>> = {};
  for (const each of describedEndpoints) {
    paths[each.path] = { ...paths[each.path], [each.endpoint.method.toLowerCase()]: operation(each, schemas) };
  }
  const responses = sharedResponses(schemas);
  return {
    openapi: '3.1.0',
    info: {
      title: 'kms',
      summary: 'Keys for client-side encryption, and who may use them',
      description: toMarkdown(guide),
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The appliance that this description comes from' }],
    tags,
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key, or the access token of a login.' },
      },
      schemas: schemas.components,
      responses,
      headers: sharedHeaders,
    },
    'x-permission-flags': flagTable,
  };
}

function operation(each: DescribedEndpoint, schemas: Schemas): Operation {
  const { endpoint, note } = each;
  const flag = requiredFlag(endpoint.access);
  const parameters = parametersOf(each, schemas);
  return {
    operationId: endpoint.id,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: [...note.description, whoMay(endpoint.access)].join('\n\n'),
    security: endpoint.access.kind === 'public' ? [] : [{ bearer: [] }],
    ...(flag !== undefined && { 'x-required-flag': flag }),
    ...(parameters.length > 0 && { parameters }),
    ...requestBody(each, schemas),
    responses: responsesOf(each, schemas),
  };
}

function requestBody({ endpoint, note }: DescribedEndpoint, schemas: Schemas): Pick<Operation, 'requestBody'> {
  if (!endpoint.body) return {};
  const schema = schemas.of(endpoint.body, 'input', `${endpoint.id}.body`);
  const example = note.body ?? exampleOf(schema, schemas, `${endpoint.id}.body`);
  return { requestBody: { required: true, content: { 'application/json': { schema, example } } } };
}

/** Patterns of path parameters. */
const patterns: Readonly<Record<string, string>> = {
  ringname: ringNamePattern,
  keyringname: ringNamePattern,
  hash: base64urlPattern,
  header: base64urlPattern,
};

/** Default descriptions of path parameters, for endpoints whose note gives none. */
const usual: Readonly<Record<string, { readonly description: string; readonly example: string }>> = {
  ringname: { description: 'name of the KeyRing; with `id=true` its id', example: 'payroll' },
  keyId: { description: 'id of the key', example: sample.keyId },
  hash: { description: 'the hash of an encrypt', example: sample.hash },
  header: { description: 'the header of an encrypt', example: sample.header },
  apikeyid: { description: 'id of the API key', example: sample.apikeyId },
};

function parametersOf({ endpoint, note, path }: DescribedEndpoint, schemas: Schemas): readonly Parameter[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const inPath = names.map((name): Parameter => {
    const said = note.params?.[name] ?? usual[name];
    if (!said) throw new Error(`${endpoint.id}: the path parameter ${name} is not described`);
    return {
      name,
      in: 'path',
      description: said.description,
      required: true,
      schema: { type: 'string', minLength: 1, ...(patterns[name] && { pattern: patterns[name] }) },
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
    // No example: the server would not accept a made-up cursor.
    if (name === 'cursor') return { name, in: 'query', description, required: false, schema };
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

/** Described as an integer: the server accepts digits only, which is how an integer is written in a URL. */
function limit(): JsonSchema {
  return { type: 'integer', minimum: 1, default: defaultLimit };
}
