// Unknown paths, known paths with another method, health, and a sealed appliance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { testAppliance } from '../support/appliance.ts';
import { person } from './samples.ts';

test('an unknown path is 404 with a message', async () => {
  const a = await testAppliance();
  for (const path of [
    '/',
    '/ks',
    '/ks/encrypt/',
    '/ks//encrypt',
    '/KS/encrypt',
    '/ks/keyrings/a/b/c/d',
    '/assets/',
    '/constructor',
  ]) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status, body } = await a.call(method, path);
      assert.equal(status, 404, `${method} ${path}`);
      assert.deepEqual(Object.keys(body), ['message']);
    }
  }
});

test('another method on a known path is 405, says which it takes and is recorded', async () => {
  const a = await testAppliance();
  const paths = new Map<string, Set<string>>();
  for (const { path, method } of endpoints) {
    const plain = path.replace(/\{\w+\}/g, 'x');
    const methods = paths.get(plain) ?? new Set();
    paths.set(plain, methods.add(method));
  }
  // `/assets/search` and the like are not taken for `/assets/{id}`.
  assert.deepEqual([...(paths.get('/assets/search') ?? [])], ['POST']);
  for (const [path, allowed] of paths) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      if (allowed.has(method)) continue;
      const { status, body, headers } = await a.call(method, path);
      assert.equal(status, 405, `${method} ${path}`);
      assert.deepEqual(Object.keys(body), ['message']);
      const listed = (headers.get('allow') ?? '').split(', ').filter((each) => each !== 'HEAD');
      assert.deepEqual(listed, [...allowed].sort());
      const [last] = await a.activity();
      assert.deepEqual(
        [last?.keyid, last?.action, last?.validAction, last?.status],
        [a.root.keyid, 'none', false, 405],
      );
    }
  }
  const before = (await a.activity()).length;
  for (const key of [null, 'garbage'])
    assert.equal((await a.call('PUT', '/ks/encrypt', undefined, { key })).status, 405);
  assert.equal((await a.call('GET', '/no/such', undefined)).status, 404);
  assert.equal((await a.activity()).length, before);
});

test('HEAD answers as GET does, without a body', async () => {
  const a = await testAppliance();
  const answer = await a.call('HEAD', '/ks/keyrings');
  assert.equal(answer.status, 200);
  assert.equal(answer.text, '');
  assert.equal((await a.call('HEAD', '/ks/encrypt')).status, 405);
});

test('HEAD changes nothing: where GET does, it is another method', async () => {
  const a = await testAppliance();
  const { key } = await person(a);
  const changing = endpoints.map((each): Endpoint => each).filter(({ method, changes }) => method === 'GET' && changes);
  assert.deepEqual(
    changing.map(({ id }) => id),
    ['refreshSession'],
  );
  for (const { path } of changing) {
    const { status, headers } = await a.call('HEAD', path, undefined, { key });
    assert.deepEqual([status, headers.get('allow')], [405, 'GET']);
    assert.equal((await a.call('GET', '/auth/user/sessions', undefined, { key })).status, 200);
    assert.equal((await a.call('GET', path, undefined, { key })).status, 200);
  }
});

test('health is public; readiness tells why not', async () => {
  let ok = true;
  const a = await testAppliance({
    ready: () => (ok ? { ok, details: { age: 5 } } : { ok, reason: 'the disk is full' }),
  });
  const ask = (path: string) => a.call('GET', path, undefined, { key: null });
  assert.equal((await ask('/healthz')).status, 200);
  assert.deepEqual([(await ask('/readyz')).status, (await ask('/readyz')).body.age], [200, 5]);
  ok = false;
  assert.equal((await ask('/healthz')).status, 200);
  assert.deepEqual([(await ask('/readyz')).status, (await ask('/readyz')).body.message], [503, 'the disk is full']);
});

test('sealed, every endpoint but health answers 503', async () => {
  const a = await testAppliance({
    sealed: () => sealed,
    local: { sealAppliance: async () => ({ sealed, kinds: [] }) },
  });
  let sealed = true;
  for (const { method, path } of endpoints) {
    const { status, body } = await a.call(method, path.replace(/\{\w+\}/g, 'x'), method === 'GET' ? undefined : {});
    assert.equal(status, 503, path);
    assert.match(body.message, /sealed/);
  }
  assert.equal((await a.call('PATCH', '/ks/encrypt')).status, 503);
  assert.equal((await a.call('GET', '/healthz')).status, 200);
  assert.equal((await a.call('POST', '/local/seal', undefined, { env: { local: true } })).status, 200);
  sealed = false;
  assert.equal((await a.call('GET', '/ks/keyrings')).status, 200);
});

test('every answer carries the headers that keep it from caches and guessers', async () => {
  const a = await testAppliance();
  for (const path of ['/ks/keyrings', '/no', '/healthz', '/ks/keyrings/none', '/ks/encrypt']) {
    const { headers } = await a.call('GET', path);
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin');
  }
});
