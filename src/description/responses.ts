// The responses of an operation: the one for status 200, and every error that it can get, with the server's messages.
import { type Access, type ErrorBody, emptyBody, errorBody } from '../api/endpoint.ts';
import { type DescribedEndpoint, requiredFlag, shownFlag } from './described-endpoints.ts';
import type { Content, Example, Header, JsonSchema, OpenApiResponse, Reference } from './openapi.ts';
import type { Problem } from './prose.ts';
import { exampleOf, type Schemas } from './schemas.ts';

type Responses = Record<string, OpenApiResponse | Reference>;

const header = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });
const shared = (name: string): Reference => ({ $ref: `#/components/responses/${name}` });
const state = { 'Kms-State': header('KmsState') };

export const sharedHeaders: Readonly<Record<string, Header>> = {
  KmsState: {
    description:
      'The position of the appliance: `<appliance>.<tenant>.<epoch>.<transactions>`, then `.<from>-<tag>` for each of the newest eight runs of the tenant\u2019s log, newest first. Comes with every answer to a known credential.',
    schema: {
      type: 'string',
      examples: [
        'b0cb9df0c232d99d18e7a861bcc6403f.tenant_01m7y2xq8mywjby9aqs86mgmwf.1.4711.4690-5be0cd19137e2179.0-6a09e667f3bcc908',
      ],
    },
  },
  WwwAuthenticate: { description: 'Always `Bearer`.', schema: { type: 'string', examples: ['Bearer'] } },
  Allow: { description: 'The methods that the path takes.', schema: { type: 'string', examples: ['GET, HEAD, POST'] } },
  RetryAfter: { description: 'How many seconds to wait.', schema: { type: 'integer', minimum: 1, examples: [4] } },
  XRequestId: {
    description: 'Identifies the request in the log of the server.',
    schema: { type: 'string', examples: ['x7k2m9qa-2f'] },
  },
};

export function sharedResponses(schemas: Schemas): Readonly<Record<string, OpenApiResponse>> {
  const content = (messages: readonly string[]): Content =>
    errorContent(
      schemas,
      messages.map((message) => ({ message })),
    );
  return {
    Unauthorized: {
      description: 'no usable credential',
      headers: { 'WWW-Authenticate': header('WwwAuthenticate') },
      content: content([
        'expected the header Authorization: Bearer and an API key',
        'the credential is not known, no longer valid, or not for requests from this address',
      ]),
    },
    MethodNotAllowed: {
      description: 'the path does not take this method',
      headers: { Allow: header('Allow') },
      content: content(['this path takes GET, HEAD, POST']),
    },
    TooLarge: {
      description: 'the body is over the limit',
      content: content(['the body is over the limit of 1048576 bytes']),
    },
    UnsupportedMediaType: {
      description: 'the body is compressed, or not in UTF-8',
      content: content([
        'the header Content-Encoding: a body is taken as it is, not compressed',
        'the header Content-Type: a body is taken in the charset UTF-8 alone',
      ]),
    },
    InternalError: {
      description: 'a failure of the server; the request had no effect',
      headers: { 'X-Request-Id': header('XRequestId') },
      content: content(['internal error']),
    },
    Unavailable: {
      description: 'the appliance is sealed, or cannot write right now',
      content: content([
        'the appliance is sealed',
        'the disk is nearly full: 3 MB are free, writing needs 17 MB',
        'too many requests wait for the rest of their bodies; try again',
      ]),
    },
  };
}

export function responsesOf(described: DescribedEndpoint, schemas: Schemas): Readonly<Responses> {
  const { endpoint, note } = described;
  const responses: Responses = {
    200: success(described, schemas),
    400: badRequest(described, schemas),
    405: shared('MethodNotAllowed'),
    500: shared('InternalError'),
  };
  if (endpoint.watchable)
    responses[304] = { description: 'nothing changed since the answer with the tag in `If-None-Match`' };
  if (endpoint.access.kind !== 'public') responses[401] = shared('Unauthorized');
  if (endpoint.body) {
    responses[413] = shared('TooLarge');
    responses[415] = shared('UnsupportedMediaType');
  }
  if (!note.whileSealed) responses[503] = shared('Unavailable');
  const { limits = [] } = note;
  const forbidden = [
    ...missingFlag(endpoint.access),
    ...(note.problems?.[403] ?? []),
    ...limits.map((limit) => ({ message: `the limit of ${limit} is reached` })),
  ];
  if (forbidden.length > 0)
    responses[403] = refusal(
      described,
      schemas,
      limits.length > 0 ? 'a flag is missing, or a limit is reached' : 'a flag is missing',
      forbidden,
    );
  const notFound = [
    ...(note.problems?.[404] ?? []),
    ...(note.tenantless ? [] : [{ message: 'no tenant answers this host' }]),
  ];
  if (notFound.length > 0) {
    responses[404] = refusal(described, schemas, endpoint.errors?.[404]?.description ?? 'no such tenant', notFound);
  }
  for (const [status, { description, schema = errorBody }] of Object.entries(endpoint.errors ?? {})) {
    if (status === '404' || status === '400') continue;
    const problems = [...(note.problems?.[Number(status)] ?? []), ...(status === '503' ? whileSealed(described) : [])];
    const example = note.errorExamples?.[Number(status)];
    const json = schemas.of(schema, 'output', `${endpoint.id}.${status}`);
    const wait = status === '429' ? { 'Retry-After': header('RetryAfter') } : {};
    responses[status] = {
      description,
      ...withHeaders({ ...stateHeader(described), ...wait }),
      content:
        example === undefined ? errorContent(schemas, problems) : { 'application/json': { schema: json, example } },
    };
  }
  if (endpoint.id === 'unseal') {
    responses[503] = refusal(described, schemas, 'it could not be opened or recorded', note.problems?.[503] ?? []);
  }
  return responses;
}

function success(described: DescribedEndpoint, schemas: Schemas): OpenApiResponse {
  const { endpoint, note } = described;
  const headers = withHeaders(stateHeader(described));
  if (endpoint.binary) {
    const schema: JsonSchema = { type: 'string', format: 'binary' };
    return { description: 'a file', ...headers, content: { 'application/octet-stream': { schema } } };
  }
  if (endpoint.lines) {
    const schema: JsonSchema = { type: 'string' };
    return {
      description: 'lines of text',
      ...headers,
      content: { [endpoint.lines]: { schema, example: note.answer } },
    };
  }
  if (endpoint.text) {
    const [type = ''] = endpoint.text.split(';');
    return {
      description: 'text',
      ...headers,
      content: { [type]: { schema: { type: 'string' }, example: note.answer } },
    };
  }
  const schema = schemas.of(endpoint.answer, 'output', `${endpoint.id}.answer`);
  const example = note.answer ?? exampleOf(schema, schemas, `${endpoint.id}.answer`);
  return { description: 'done', ...headers, content: { 'application/json': { schema, example } } };
}

function badRequest(described: DescribedEndpoint, schemas: Schemas): OpenApiResponse {
  const { endpoint, note } = described;
  if (endpoint.silent400) {
    const schema = schemas.of(emptyBody, 'output', endpoint.id);
    return {
      description: 'the token, the password or the body is wrong',
      content: { 'application/json': { schema, example: {} } },
    };
  }
  const problems = [...(note.problems?.[400] ?? []), ...inputProblems(described, schemas)];
  const own = endpoint.errors?.[400];
  if (!own?.schema) return refusal(described, schemas, 'the request breaks a rule', problems);
  const schema = schemas.of(own.schema, 'output', endpoint.id);
  const [plain] = Object.values(errorContent(schemas, problems));
  const examples = { [own.description]: { value: exampleOf(schema, schemas, endpoint.id) }, ...plain?.examples };
  const content = {
    'application/json': { schema: { anyOf: [schema, plain?.schema ?? {}] }, examples: named(examples) },
  };
  return { description: withMessages(`${own.description}, or the request breaks a rule`, problems), content };
}

/** Problems with the form of a request. */
function inputProblems({ endpoint }: DescribedEndpoint, schemas: Schemas): Problem[] {
  const problems: Problem[] = [];
  if (endpoint.body) {
    const [first] = schemas.of(endpoint.body, 'input', `${endpoint.id}.body`).required ?? [];
    if (first !== undefined) problems.push({ field: first, message: 'is required' });
    problems.push(
      { message: 'the body needs the header Content-Type: application/json' },
      { message: 'the body is not valid JSON in UTF-8' },
    );
  }
  const [missing] = endpoint.query ? (schemas.of(endpoint.query, 'input', endpoint.id).required ?? []) : [];
  if (missing !== undefined) problems.push({ field: missing, message: 'is required' });
  if (endpoint.paginated) {
    problems.push(
      { field: 'limit', message: 'must be an integer of at least 1' },
      { field: 'cursor', message: 'is not one that this list gave out for these filters' },
    );
  }
  return problems.length > 0 ? problems : [{ message: 'the header Host is missing' }];
}

function missingFlag(access: Access): Problem[] {
  const flag = requiredFlag(access);
  return flag === undefined ? [] : [{ message: `the permission flag ${shownFlag(access, flag)} is missing` }];
}

function whileSealed({ note }: DescribedEndpoint): Problem[] {
  return note.whileSealed ? [] : [{ message: 'the appliance is sealed' }];
}

function refusal(
  described: DescribedEndpoint,
  schemas: Schemas,
  description: string,
  problems: readonly Problem[],
): OpenApiResponse {
  return {
    description: withMessages(description, problems),
    ...withHeaders(stateHeader(described)),
    content: errorContent(schemas, problems),
  };
}

/** The description of a status in Markdown: a first line, then the possible messages. */
function withMessages(description: string, problems: readonly Problem[]): string {
  const messages = new Set(problems.map((each) => errorExample(each).message));
  return [`${description}:`, '', ...[...messages].map((message) => `- ${message}`)].join('\n');
}

/** The first line of such a description. */
export function meaningOf({ description }: Pick<OpenApiResponse, 'description'>): string {
  return description.split(':\n')[0] ?? description;
}

function stateHeader({ endpoint }: DescribedEndpoint): Readonly<Record<string, Reference>> {
  return endpoint.access.kind === 'public' ? {} : state;
}

function withHeaders(headers: Readonly<Record<string, Reference>>): { headers?: Readonly<Record<string, Reference>> } {
  return Object.keys(headers).length > 0 ? { headers } : {};
}

function errorContent(schemas: Schemas, problems: readonly Problem[]): Content {
  const schema = schemas.of(errorBody, 'output', 'Error');
  const bodies = problems.map(errorExample);
  const examples = Object.fromEntries(bodies.map((value) => [value.message, { value }]));
  return { 'application/json': { schema, examples: named(examples) } };
}

function errorExample({ field, message }: Problem): ErrorBody {
  return field === undefined ? { message } : { message: `${field}: ${message}`, errors: { [field]: message } };
}

/** Names the examples with valid object keys, and keeps their messages as summaries. */
function named(examples: Readonly<Record<string, Example>>): Readonly<Record<string, Example>> {
  return Object.fromEntries(
    Object.entries(examples).map(([summary, { value }], index) => [`example${index + 1}`, { summary, value }]),
  );
}
