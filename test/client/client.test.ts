// The client's requests and answers: its paths, where inputs go, errors by status, and pages.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { loginEndpoints } from '../../src/api/logins.ts';
import { clientPaths, type Path } from '../../src/api/paths.ts';
import { userEndpoints } from '../../src/api/users.ts';
import { createClient } from '../../src/client/client.ts';
import { items } from '../../src/client/pages.ts';
import { KmsError } from '../../src/errors.ts';
import { sampleAnswerTo } from '../support/answers.ts';

test('the paths are those of the declarations, query parameters too', () => {
  const declared = new Map<string, Endpoint>(
    [...endpoints, ...loginEndpoints, ...userEndpoints]
      .filter((each) => !('binary' in each || 'text' in each || 'lines' in each))
      .map((each) => [each.id, each]),
  );
  assert.deepEqual(Object.keys(clientPaths).sort(), [...declared.keys()].sort());
  for (const [id, [method, path, ...query]] of Object.entries<Path>(clientPaths)) {
    const endpoint = declared.get(id);
    assert.deepEqual([method, path], [endpoint?.method, endpoint?.path], id);
    assert.deepEqual([...query].sort(), Object.keys(endpoint?.query?.shape ?? {}).sort(), id);
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const all = [...names, ...query, ...Object.keys(endpoint?.body?.shape ?? {})];
    assert.equal(new Set(all).size, all.length, `${id}: no two inputs of one name`);
  }
});

test('there are the 49 endpoints of the interface, and 91 of approvals, restoring, wrapping keys anew, signing keys, managed keys, random bytes and hashes, secrets, Tang key pairs, setting up, sessions, heads, second factors, identity providers, backups, the overview, names, deleting a key by its id, and proofs', () => {
  assert.equal(Object.keys(clientPaths).length, 140);
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  readonly headers: Record<string, string>;
}

function recorder(answer: (request: Request) => Response): {
  seen: Seen[];
  fetch: (request: Request) => Promise<Response>;
} {
  const seen: Seen[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    const { method, url } = request;
    seen.push({ method, url, body: await request.text(), headers: Object.fromEntries(request.headers) });
    return answer(request);
  };
  return { seen, fetch };
}

test('puts each input where it belongs', async () => {
  const { seen, fetch } = recorder(sampleAnswerTo);
  const client = createClient({ baseUrl: 'https://kms.example/', apiKey: 'kms_secret', fetch });
  await client.getKeyring({ ringname: 'a/b?c#d é', id: true });
  await client.createApiKey({ accountId: 'x', uid: true, flags: { '*': true } });
  await client.searchActivity({ limit: 5, valid: false });
  await client.deleteKeyring({ name: 'r' });
  await client.logout();
  assert.deepEqual(
    seen.map(({ method, url, body }) => [method, url, body]),
    [
      ['GET', 'https://kms.example/ks/keyrings/a%2Fb%3Fc%23d%20%C3%A9?id=true', ''],
      ['POST', 'https://kms.example/auth/apikey?uid=true', '{"accountId":"x","flags":{"*":true}}'],
      ['POST', 'https://kms.example/auth/search/activity?limit=5', '{"valid":false}'],
      ['DELETE', 'https://kms.example/ks/keyrings/r', ''],
      ['POST', 'https://kms.example/auth/basic/logout', '{}'],
    ],
  );
  for (const { headers, body } of seen) {
    assert.equal(headers.authorization, 'Bearer kms_secret');
    assert.equal(headers['content-type'], body === '' ? undefined : 'application/json');
  }
});

for (const name of ['', '.', '..']) {
  test(`a path value that would make another URL is refused: "${name}"`, async () => {
    const { seen, fetch } = recorder(() => Response.json({}));
    const client = createClient({ baseUrl: 'https://kms.example', fetch });
    await assert.rejects(client.getAsset({ id: name }), { name: 'KmsError', code: 'invalid' });
    assert.equal(seen.length, 0);
  });
}

test('a name that leads to the path of another endpoint is one that nothing has', async () => {
  const { seen, fetch } = recorder(() => Response.json({}));
  const client = createClient({ baseUrl: 'https://kms.example', fetch });
  for (const key of ['random', 'hash', 'wrapping-key']) {
    const none = { code: 'not-found', message: 'there is no such managed key' };
    await assert.rejects(client.getManagedKey({ key }), none);
    await assert.rejects(client.deleteManagedKey({ key }), none);
  }
  await assert.rejects(client.getAsset({ id: 'search' }), {
    code: 'not-found',
    message: 'there is nothing of this name',
  });
  assert.equal(seen.length, 0);
});

const failures: readonly (readonly [status: number, body: unknown, code: string, message: string])[] = [
  [400, { message: 'name: is missing', errors: { name: 'is missing' } }, 'invalid', 'name: is missing'],
  [400, { state: 'malformed-password', results: {} }, 'invalid', 'the password does not meet the rules'],
  [400, {}, 'invalid', 'refused with status 400'],
  [401, { message: 'unknown credential' }, 'unauthenticated', 'unknown credential'],
  [401, { state: 'expired' }, 'unauthenticated', 'the token is expired'],
  [403, { message: 'the flag x is missing' }, 'forbidden', 'the flag x is missing'],
  [404, { message: 'no such ring' }, 'not-found', 'no such ring'],
  [413, { message: 'too large' }, 'too-large', 'too large'],
  [431, { message: 'the headers are too large' }, 'too-large', 'the headers are too large'],
  [422, { asset: { message: 'it was altered', valid: false } }, 'asset-invalid', 'it was altered'],
  [500, { message: 'internal error' }, 'internal', 'internal error'],
  [502, 'Bad Gateway', 'unavailable', 'https://kms.example answered with status 502 and no message'],
  [503, { message: 'the appliance is sealed' }, 'sealed', 'the appliance is sealed'],
  [503, { message: 'the store cannot write' }, 'unavailable', 'the store cannot write'],
  [404, '<html>', 'unavailable', 'expected JSON from https://kms.example, got something else'],
  [200, [], 'unavailable', 'expected JSON from https://kms.example, got something else'],
  [200, '<html>', 'unavailable', 'expected JSON from https://kms.example, got something else'],
];

for (const [status, body, code, message] of failures) {
  test(`status ${status} with ${JSON.stringify(body)} is ${code}`, async () => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const { fetch } = recorder(() => new Response(text, { status }));
    const client = createClient({ baseUrl: 'https://kms.example', fetch });
    await assert.rejects(client.listKeyrings(), (error) => {
      assert.ok(error instanceof KmsError);
      assert.deepEqual([error.code, error.message], [code, message]);
      return true;
    });
  });
}

test('what cannot be reached is unavailable, what is given up stays an abort', async () => {
  const refused = async (): Promise<Response> => {
    throw new TypeError('fetch failed', {
      cause: Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    });
  };
  const client = createClient({ baseUrl: 'https://kms.example', fetch: refused });
  await assert.rejects(client.listKeyrings(), {
    code: 'unavailable',
    message: 'cannot reach https://kms.example: connect ECONNREFUSED',
  });
  const signal = AbortSignal.abort();
  const slow = createClient({ baseUrl: 'https://kms.example', fetch: (request) => fetch(request) });
  await assert.rejects(slow.listKeyrings({}, { signal }), { name: 'AbortError' });
});

test('iterates over all pages', async () => {
  const [first, second, third] = ['1', '2', '3'].map((end) => ({
    id: `asset_01jz4b8m6q3v9x2c5d7f8g9h0${end}`,
    createdAt: '2026-01-02T03:04:05.678Z',
    data: {},
    parents: [],
  }));
  const pages = [
    { data: [first, second], pagination: { limit: 2, count: 2, hasMore: true, nextCursor: 'c' } },
    { data: [third], pagination: { limit: 2, count: 1, hasMore: false } },
  ];
  const { seen, fetch } = recorder(() => Response.json(pages[seen.length - 1]));
  const client = createClient({ baseUrl: 'https://kms.example', fetch });
  const found: unknown[] = [];
  for await (const asset of items(client.searchAssets, { limit: 2, data: { a: 1 } })) found.push(asset);
  assert.deepEqual(found, [first, second, third]);
  assert.deepEqual(
    seen.map(({ url, body }) => [url, body]),
    [
      ['https://kms.example/assets/search?limit=2', '{"data":{"a":1}}'],
      ['https://kms.example/assets/search?cursor=c&limit=2', '{"data":{"a":1}}'],
    ],
  );
});

test('a watch has loaded before the first request, sees each answer, and keeps what it saw', async () => {
  const steps: string[] = [];
  const step = async (what: string): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    steps.push(what);
  };
  const client = createClient({
    baseUrl: 'https://kms.example',
    retries: 0,
    async fetch() {
      steps.push('sent');
      return Response.json({ message: 'no' }, { status: 404 });
    },
    watch: { ready: step('ready'), see: ({ status }) => step(`seen ${status}`), save: () => step('saved') },
  });
  for (let n = 0; n < 2; n++) await assert.rejects(client.listKeyrings());
  assert.deepEqual(steps, ['ready', 'sent', 'seen 404', 'saved', 'sent', 'seen 404', 'saved']);
});
