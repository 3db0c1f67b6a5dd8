// Facts that must not leak: whether a ring exists, and any secret, in answers and in the log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, testAppliance } from '../support/appliance.ts';
import { makeRing, type Sample, sampled, urlOf } from './samples.ts';

test('whether a ring exists is not told to a key that may not read it', async () => {
  const a = await testAppliance();
  const ring = await makeRing(a);
  const gone = await makeRing(a);
  const mine = await makeRing(a);
  const sealed = (await a.call('POST', '/ks/encrypt', { ringname: ring.name })).body;
  const lost = (await a.call('POST', '/ks/encrypt', { ringname: gone.name })).body;
  await a.call('DELETE', `/ks/keyrings/${gone.name}`);
  const { key } = await a.keyWith(`keyring.${mine.name}.*`, 'keyring.list');
  const ask = async (method: string, path: string, body?: object) => {
    const { status, body: answer } = await a.call(method, path, body, { key });
    return [status, answer.message];
  };
  const unknownId = ring.id.replace(/.$/, ring.id.endsWith('0') ? '1' : '0');
  const pairs = [
    ['GET', `/ks/keyrings/${ring.id}?id=true`, `/ks/keyrings/${unknownId}?id=true`],
    ['GET', `/ks/keyrings/${ring.id}/keys?id=true`, `/ks/keyrings/${unknownId}/keys?id=true`],
    ['GET', `/ks/hash/${sealed.hash}`, `/ks/hash/${lost.hash}`],
    ['GET', `/ks/header/${sealed.header}`, `/ks/header/${lost.header}`],
    ['POST', `/ks/keyrings/${ring.id}/restore`, `/ks/keyrings/${unknownId}/restore`],
  ] as const;
  for (const [method, there, missing] of pairs) {
    assert.deepEqual(await ask(method, there), await ask(method, missing), there);
    assert.equal((await ask(method, there))[0], 403);
  }
  const decrypt = (body: object) => ask('POST', '/ks/decrypt', body);
  assert.deepEqual(await decrypt({ hash: sealed.hash }), await decrypt({ hash: lost.hash }));
  const byName = async (name: string) => {
    const [status, message] = await ask('GET', `/ks/keyrings/${name}`);
    return [status, String(message).replace(name, 'NAME')];
  };
  assert.deepEqual(await byName(ring.name), await byName('no-such-ring'));
  assert.equal((await ask('GET', `/ks/keyrings/${mine.name}`))[0], 200);
  const wild = (await a.keyWith('keyring.*.read')).key;
  for (const path of ['/ks/keyrings/no-such-ring', `/ks/hash/${lost.hash}`, `/ks/keyrings/${unknownId}?id=true`]) {
    assert.equal((await a.call('GET', path, undefined, { key: wild })).status, 404, path);
  }
});

test('a request that names no ring is 400 to those who have the operation on some ring, 403 to others', async () => {
  const a = await testAppliance();
  const some = (await a.keyWith('keyring.mine.*')).key;
  const none = (await a.keyWith('keyring.list')).key;
  const requests: readonly [string, string, object | undefined][] = [
    ['POST', '/ks/encrypt', {}],
    ['POST', '/ks/encrypt', { ringname: 7 }],
    ['POST', '/ks/decrypt', {}],
    ['POST', '/ks/decrypt', { hash: 'x' }],
    ['POST', '/ks/rotate', { algo: 'aes256' }],
    ['PUT', '/ks/config', { config: {} }],
    ['GET', '/ks/config', undefined],
    ['GET', '/ks/hash/garbage', undefined],
  ];
  for (const [method, path, body] of requests) {
    assert.equal((await a.call(method, path, body, { key: some })).status, 400, path);
    const { status, body: refused } = await a.call(method, path, body, { key: none });
    assert.equal(status, 403, path);
    assert.match(refused.message, /keyring\.<ringname>\./);
  }
  assert.equal((await a.call('GET', '/ks/header/garbage', undefined, { key: some })).status, 404);
});

test('no secret gets into the log or an error, not even out of a path', async () => {
  const a = await testAppliance();
  const secrets: string[] = [a.root.key];
  const send = async (each: (typeof sampled)[number], sample: Sample, key: string): Promise<Answer> =>
    a.call(each.endpoint.method, urlOf(each.endpoint, sample), sample.body, { key });
  for (const each of sampled) {
    const sample = await each.make(a);
    const weak = await a.keyWith();
    for (const key of [weak.key, `${weak.key.slice(0, -1)}!`, a.root.key]) {
      const { status, text } = await send(each, sample, key);
      if (status >= 400) assert.ok(!text.includes(key), `${each.endpoint.id} repeats the credential`);
    }
    secrets.push(weak.key);
    // A key pair's thumbprint is no secret.
    const { thumbprint: _, ...params } = sample.params ?? {};
    for (const value of [...Object.values(params), ...Object.values(sample.body ?? {})]) {
      if (typeof value === 'string' && value.length > 40) secrets.push(value);
    }
  }
  const unknown = await a.call('DELETE', `/auth/apikey/${a.root.key.replace('kms_', 'kms-')}`);
  assert.ok(!unknown.text.includes(a.root.key.slice(4)));
  await a.call('GET', `/auth/${a.root.key}`);
  await a.call('PUT', `/auth/apikey/${a.root.key}`);
  const log = a.log.join('\n');
  const records = JSON.stringify(await a.activity());
  for (const secret of secrets) {
    assert.ok(!log.includes(secret), `the log holds ${secret.slice(0, 8)}…`);
    assert.ok(!records.includes(secret), `the activity holds ${secret.slice(0, 8)}…`);
  }
  const { message, ...line } = JSON.parse(a.log.find((each) => each.includes('{apikey}')) ?? '{}');
  assert.equal(message, 'request');
  assert.deepEqual(Object.keys(line).sort(), ['action', 'keyid', 'method', 'ms', 'requestId', 'route', 'status']);
});
