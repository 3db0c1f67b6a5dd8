// The running server and the API description agree: every described answer is given, and every answer given is
// described, to the last field.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { makeDescription } from '../../build/description.ts';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { describedEndpoints } from '../../src/description/described-endpoints.ts';
import type { OpenApiDocument } from '../../src/description/openapi.ts';
import { KmsError } from '../../src/errors.ts';
import type { Sealing } from '../../src/http/appliance-port.ts';
import type { DescriptionFiles } from '../../src/model/program-files.ts';
import { type Sample, sampled, urlOf } from '../http/samples.ts';
import { type Appliance, type ApplianceOptions, testAppliance } from '../support/appliance.ts';
import { type Given, judgeOf, operationsOf } from '../support/description.ts';
import { badRequests, malformedRequest, missing, special } from './refused.ts';

const sources = await makeDescription();
const document: OpenApiDocument = JSON.parse(sources.document);
const judge = judgeOf(document);
const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text));
const files: DescriptionFiles = {
  document: bytes(sources.document),
  page: bytes(sources.page),
  pages: new Map(Object.entries(sources.pages).map(([name, text]) => [name, bytes(text)])),
  style: bytes(sources.style),
  script: bytes(sources.script),
  icon: bytes(sources.icon),
};

const sealing: Sealing = {
  status: () => ({ sealed: false, kinds: ['shares'], threshold: 3, progress: 0 }),
  refusal: () => undefined,
  unseal: async (step) => {
    if (step.retry) {
      const what = 'looking for the key again (retry) is for the local socket';
      throw new KmsError('forbidden', `${what}: run \`kms unseal\` on the machine itself`);
    }
    if (step.key) throw new KmsError('unavailable', 'the key is right, but the appliance could not be opened');
    if (step.share) throw new KmsError('rate-limited', 'too many failed tries; try again in 4 s', { retryAfter: 4 });
    if (step.reset) throw new Error('broken');
    return { sealed: false, kinds: ['passphrase'] };
  },
  seal: async () => {},
};
const make = (options: ApplianceOptions = {}): Promise<Appliance> =>
  testAppliance({
    tenants: [{ name: 'default', hosts: ['kms.test'] }],
    bodyLimit: 4096,
    descriptionFiles: async () => files,
    sealing,
    ...options,
  });

const [open, sealed, broken] = await Promise.all([
  make(),
  make({
    sealed: () => true,
    ready: () => ({ ok: false, reason: 'the appliance is sealed', details: { sealed: true } }),
  }),
  make({
    descriptionFiles: () => Promise.reject(new Error('broken')),
    sealing: { ...sealing, status: () => assert.fail('broken') },
    ready: () => assert.fail('broken'),
  }),
]);
// Makes every transaction fail midway.
const breaking = () => Promise.reject(new Error('broken'));
for (const { handle } of broken.tenants) {
  Object.assign(handle.store, { transaction: breaking, transactionInSlices: breaking });
}

/** Answers given so far, as `id status`. */
const given = new Set<string>();

interface Call {
  readonly url: string;
  readonly method?: string;
  readonly key?: string | null | undefined;
  readonly body?: unknown;
  readonly raw?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(a: Appliance, endpoint: Endpoint, call: Call): Promise<Given> {
  const {
    url,
    key = a.root.key,
    body,
    raw = body === undefined ? undefined : JSON.stringify(body),
    host,
    method = endpoint.method,
    headers,
  } = call;
  const response = await a.app.fetch(
    new Request(`http://kms.test${url}`, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(host !== undefined && { host }),
        ...(raw !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(raw !== undefined && { body: raw }),
    }),
    {},
  );
  return read(response);
}

async function read(response: Response): Promise<Given> {
  const { status, headers } = response;
  const isJson = headers.get('content-type') === 'application/json';
  return { status, headers, body: isJson ? await response.json() : await response.text() };
}

/** Checks that the answer has the expected status and matches its description. */
function agree(id: string, expected: number, answer: Given): void {
  assert.equal(answer.status, expected, `${id}: ${JSON.stringify(answer.body)}`);
  assert.deepEqual(judge.answer(id, answer), [], `${id} ${expected}: ${JSON.stringify(answer.body)}`);
  given.add(`${id} ${expected}`);
}

const samplesById = new Map<string, (a: Appliance) => Promise<Sample>>(
  sampled.map(({ endpoint, make }) => [endpoint.id, make]),
);
const unsealed: Sample = { body: { passphrase: 'x' } };

async function sampleOf(a: Appliance, id: string): Promise<Sample> {
  return (await samplesById.get(id)?.(a)) ?? (id === 'unseal' ? unsealed : {});
}

const plain = (path: string): string => path.replace(/\{\w+\}/g, 'x');

for (const { endpoint, path, note } of describedEndpoints) {
  const { id, access } = endpoint;

  test(`${id}: what succeeds is answered as described`, async () => {
    const sample = await sampleOf(open, id);
    const key = access.kind === 'public' ? null : sample.key;
    const call = { url: urlOf(endpoint, sample), key, body: sample.body };
    const answer = await ask(open, endpoint, call);
    agree(id, 200, answer);
    if (!endpoint.watchable) return;
    const etag = answer.headers.get('etag') ?? assert.fail('no ETag');
    const unchanged = await ask(open, endpoint, { ...call, headers: { 'If-None-Match': etag } });
    assert.deepEqual([unchanged.status, unchanged.body], [304, '']);
    given.add(`${id} 304`);
  });

  test(`${id}: what is refused is answered as described`, async () => {
    const sample = await sampleOf(open, id);
    const url = urlOf(endpoint, sample);
    const isPublic = access.kind === 'public';
    const call = { url, body: sample.body, key: isPublic ? null : sample.key };
    if (!isPublic) {
      agree(id, 401, await ask(open, endpoint, { ...call, key: null }));
      agree(id, 401, await ask(open, endpoint, { ...call, key: 'wrong' }));
    }
    if (access.kind === 'flag') {
      const { key } = await open.keyWith('mine');
      const answer = await ask(open, endpoint, { ...call, key });
      agree(id, 403, answer);
      assert.match(JSON.stringify(answer.body), /the permission flag .* is missing/);
    }
    if (!note.tenantless) agree(id, 404, await ask(open, endpoint, { ...call, host: 'elsewhere.example' }));
    if (endpoint.body) {
      agree(id, 413, await ask(open, endpoint, { ...call, raw: ' '.repeat(5000) }));
      agree(id, 415, await ask(open, endpoint, { ...call, headers: { 'Content-Encoding': 'gzip' } }));
    }
    const taken = Object.keys(document.paths[path] ?? {});
    const other = ['PUT', 'PATCH', 'DELETE'].find((method) => !taken.includes(method.toLowerCase()));
    agree(id, 405, await ask(open, endpoint, { url: plain(endpoint.path), method: other ?? '' }));
    if (note.whileSealed) return;
    agree(id, 503, await ask(sealed, endpoint, { ...call, key: 'x' }));
  });

  test(`${id}: what breaks is answered as described`, async () => {
    if (id === 'getHealth') return;
    const sample = id === 'unseal' ? { body: { reset: true } } : await sampleOf(open, id);
    const call = { url: urlOf(endpoint, sample), body: sample.body, key: access.kind === 'public' ? null : undefined };
    agree(id, 500, await ask(broken, endpoint, call));
  });

  test(`${id}: a bad request is answered as described`, async () => {
    for (const bad of badRequests(endpoint))
      agree(id, 400, await ask(open, endpoint, { key: access.kind === 'public' ? null : undefined, ...bad }));
    const answer = await malformedRequest(endpoint.method, plain(endpoint.path));
    // An endpoint that answers `{}` describes no refusals of requests that never reach it.
    if (!endpoint.silent400) agree(id, 400, answer);
  });

  test(`${id}: what is not there is answered as described`, async () => {
    for (const each of missing(endpoint)) agree(id, 404, await ask(open, endpoint, each));
  });
}

for (const { name, id, status, make: makeCall } of special) {
  test(`${id}: ${name}`, async () => {
    const endpoint = describedEndpoints.find((each) => each.endpoint.id === id)?.endpoint ?? assert.fail(id);
    const a = await make({ sealed: () => false });
    agree(id, status, await ask(a, endpoint, await makeCall(a)));
  });
}

test('what cannot be served is told as described', async () => {
  const ready = describedEndpoints.find(({ endpoint }) => endpoint.id === 'getReadiness')?.endpoint ?? assert.fail();
  agree('getReadiness', 503, await ask(sealed, ready, { url: '/readyz', key: null }));
});

test('every path that the app answers is described, and every described one is answered', async () => {
  const a = await make();
  const own = /^\/(local|console)\b|^\/docs\/./;
  const answered = new Set(
    a.app.paths
      .filter(({ path }) => !own.test(path))
      .map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`),
  );
  const described = operationsOf(document).map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
  assert.deepEqual([...answered].sort(), described.sort());
});

after(() => {
  const all = operationsOf(document).flatMap(({ operation }) =>
    Object.keys(operation.responses).map((status) => `${operation.operationId} ${status}`),
  );
  const never = all.filter((each) => !given.has(each));
  // It has nothing that could break, but a 500 can never be ruled out.
  assert.deepEqual(never, ['getHealth 500'], 'described, but never given');
});
