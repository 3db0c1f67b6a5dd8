// The API description: an OpenAPI 3.1 document, made from the endpoints' declarations, their schemas and the notes on
// them. It is made when the executable is built, or when a server that runs from the sources is first asked for it.
import { flagTable } from '../model/flags.ts';
import { type Declared, declared } from './declared.ts';
import { exampleOf } from './examples.ts';
import { requiredFlag, whoMay } from './flag.ts';
import { guide, tags } from './guide.ts';
import { parametersOf } from './parameters.ts';
import { toMarkdown } from './prose.ts';
import { responsesOf, sharedHeaders, sharedResponses } from './responses.ts';
import { Schemas } from './schemas.ts';
import type { OpenApiDocument, Operation } from './types.ts';

export function openApiDocument(version: string): OpenApiDocument {
  const schemas = new Schemas();
  const paths: Record<string, Record<string, Operation>> = {};
  for (const each of declared) {
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

function operation(each: Declared, schemas: Schemas): Operation {
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

function requestBody({ endpoint, note }: Declared, schemas: Schemas): Pick<Operation, 'requestBody'> {
  if (!endpoint.body) return {};
  const schema = schemas.of(endpoint.body, 'input', `${endpoint.id}.body`);
  const example = note.body ?? exampleOf(schema, schemas, `${endpoint.id}.body`);
  return { requestBody: { required: true, content: { 'application/json': { schema, example } } } };
}
