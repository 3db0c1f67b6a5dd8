// The appliance as clients of Tang see it: paths, statuses and content types as tangd has them, access and rate limits,
// records, and that no request makes it fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TangLimits, tangAddresses } from '../../src/dialects/tang/limits.ts';
import { type AnyJson, type Appliance, type CallOptions, testAppliance } from '../support/appliance.ts';
import { longestGo } from '../support/longest-go.ts';
import { expectedX, somePoint } from '../support/tang.ts';

interface Sent extends Pick<CallOptions, 'host' | 'headers'> {
  readonly from?: string;
  /** A raw body instead of JSON. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
}

const allowed = tangAddresses();

async function ask(a: Appliance, method: string, path: string, body?: unknown, sent: Sent = {}) {
  const { from: remoteAddress = '10.0.0.1', raw, host = 'kms.test', headers = {} } = sent;
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const request = new Request(`http://kms.test${path}`, {
    method,
    headers: { host, ...headers },
    ...(content !== undefined && { body: content }),
  });
  const answer = await a.app.fetch(request, { surface: 'tang', tangClients: allowed, remoteAddress });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

async function advertisedAt(a: Appliance, sent: Sent = {}, path = '/adv'): Promise<AnyJson> {
  const { status, headers, text } = await ask(a, 'GET', path, undefined, sent);
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/jose+json']);
  const jws = JSON.parse(text);
  const [signing, exchange] = JSON.parse(Buffer.from(jws.payload, 'base64url').toString()).keys;
  return { jws, signing, exchange };
}

const pairs = async (a: Appliance) => (await a.call('GET', '/tang/pairs')).body.pairs;
const rotate = async (a: Appliance) => (await a.call('POST', '/tang/pairs')).body.pair;

test('what is advertised is made by who asks first, once, and recovers', async () => {
  const a = await testAppliance();
  const [one, two] = await Promise.all([advertisedAt(a), advertisedAt(a)]);
  assert.deepEqual(one.exchange, two.exchange);
  const [pair, ...others] = await pairs(a);
  assert.deepEqual(others, []);
  assert.equal(pair.advertised, true);
  const { status, headers, text } = await ask(a, 'POST', `/rec/${pair.exchange}`, somePoint);
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/jwk+json']);
  assert.equal(headers.get('cache-control'), 'no-store');
  const { x, y, ...rest } = JSON.parse(text);
  assert.deepEqual(rest, { alg: 'ECMR', crv: 'P-521', key_ops: ['deriveKey'], kty: 'EC' });
  assert.equal(x, expectedX(one.exchange));
  assert.equal(y.length, 88);
  const told = (await a.activity()).map(({ action, keyid, address, props }) => [action, keyid, address, props.object]);
  const object = { type: 'tang-pair', id: pair.thumbprint };
  assert.deepEqual(told.slice(0, 3), [
    ['tang.recover', 'network', '10.0.0.1', object],
    ['tang.read', a.root.keyid, undefined, undefined],
    ['tang.rotate', 'network', '10.0.0.1', object],
  ]);
  const [after] = await pairs(a);
  assert.deepEqual([after.recoveries, after.recoveredAt], [1, new Date(a.world.now()).toISOString()]);
});

test('after a rotation the new pair is advertised, the old one recovers and signs for who trusts it', async () => {
  const a = await testAppliance();
  const old = await rotate(a);
  const before = await ask(a, 'POST', `/rec/${old.exchange}`, somePoint);
  const fresh = await rotate(a);
  const listed = await pairs(a);
  assert.deepEqual(
    listed.map((each: AnyJson) => [each.thumbprint, each.advertised, each.rotatedAt !== undefined]),
    [
      [fresh.thumbprint, true, false],
      [old.thumbprint, false, true],
    ],
  );
  const plain = await advertisedAt(a);
  assert.equal(plain.jws.signatures, undefined);
  const byNew = await advertisedAt(a, {}, `/adv/${fresh.thumbprint}`);
  assert.deepEqual(byNew.jws, plain.jws);
  const byOld = await advertisedAt(a, {}, `/adv/${old.thumbprint}`);
  assert.deepEqual([byOld.jws.payload, byOld.jws.signatures.length], [plain.jws.payload, 2]);
  assert.equal((await ask(a, 'POST', `/rec/${old.exchange}`, somePoint)).text, before.text);
  assert.notEqual((await ask(a, 'POST', `/rec/${fresh.exchange}`, somePoint)).text, before.text);
  assert.equal((await a.call('DELETE', `/tang/pairs/${fresh.thumbprint}`)).status, 400);
  assert.equal((await a.call('DELETE', `/tang/pairs/${old.exchange}`)).body.pair.thumbprint, old.thumbprint);
  assert.equal((await ask(a, 'POST', `/rec/${old.exchange}`, somePoint)).status, 404);
  assert.equal((await ask(a, 'GET', `/adv/${old.thumbprint}`)).status, 404);
  assert.equal((await a.call('DELETE', `/tang/pairs/${old.thumbprint}`)).status, 404);
});

test('at most 100 pairs are kept', async () => {
  const a = await testAppliance();
  for (let n = 0; n < 100; n++) await rotate(a);
  const { status, body } = await a.call('POST', '/tang/pairs');
  assert.equal(status, 400);
  assert.match(body.message, /100 Tang key pairs already/);
  const all = await pairs(a);
  assert.equal(all.length, 100);
  assert.equal((await a.call('DELETE', `/tang/pairs/${all[50].thumbprint}`)).status, 200);
  assert.equal((await a.call('POST', '/tang/pairs')).status, 200);
});

test('what is wrong is refused with the statuses of tangd, recovers nothing and is not recorded', async () => {
  const a = await testAppliance();
  const { thumbprint, exchange } = await rotate(a);
  const records = (await a.activity()).length;
  const { x, y, ...rest } = somePoint;
  const rec = `/rec/${exchange}`;
  const zero = Buffer.alloc(66).toString('base64url');
  const cases: readonly (readonly [
    number,
    string,
    string,
    (unknown | undefined)?,
    (string | Uint8Array<ArrayBuffer>)?,
  ])[] = [
    [404, 'GET', '/'],
    [404, 'GET', '/advertise'],
    [404, 'GET', '/adv/a/b'],
    [404, 'GET', '/adv/%2e%2e'],
    [404, 'GET', `/adv/${exchange}`],
    [404, 'GET', '/adv/unknown'],
    [405, 'POST', '/adv', somePoint],
    [405, 'HEAD', '/adv'],
    [405, 'GET', rec],
    [405, 'PUT', rec, somePoint],
    [404, 'POST', '/rec', somePoint],
    [404, 'POST', '/rec/', somePoint],
    [404, 'POST', '/rec/unknown', somePoint],
    [404, 'GET', '/healthz'],
    [404, 'POST', '/system/unseal', { secret: 'x' }],
    [404, 'GET', '/tang/pairs'],
    [403, 'POST', `/rec/${thumbprint}`, somePoint],
    [403, 'POST', rec, { ...somePoint, key_ops: ['verify'] }],
    [403, 'POST', rec, { ...somePoint, key_ops: 'deriveKey' }],
    [403, 'POST', rec, { ...somePoint, key_ops: [] }],
    [400, 'POST', rec],
    [400, 'POST', rec, undefined, 'not JSON'],
    [400, 'POST', rec, undefined, new Uint8Array([0xff, 0xfe])],
    ...[null, [], 1, 'x', {}, rest, { ...rest, x }, { ...rest, y }].map((body) => [400, 'POST', rec, body] as const),
    ...[
      { kty: 'OKP' },
      { kty: 'oct' },
      { kty: 1 },
      { crv: 'P-256' },
      { crv: undefined },
      { alg: 'ECDH' },
      { alg: null },
    ].map((wrong) => [400, 'POST', rec, { ...somePoint, ...wrong }] as const),
    ...[{ x: y, y: x }, { x: zero, y: zero }, { x: '' }, { y: 'AQ' }, { x: 5 }, { y: `${y}=` }, { x: ` ${x}` }].map(
      (wrong) => [400, 'POST', rec, { ...somePoint, ...wrong }] as const,
    ),
    [413, 'POST', rec, undefined, ' '.repeat(20_000)],
  ];
  for (const [status, method, path, body, raw] of cases) {
    a.advance(60_000);
    const got = await ask(a, method, path, body, raw === undefined ? {} : { raw });
    assert.equal(got.status, status, `${method} ${path} ${JSON.stringify(body)}: ${got.text}`);
    assert.equal(got.headers.get('allow'), status === 405 ? (path === rec ? 'POST' : 'GET') : null);
    if (method !== 'HEAD') assert.equal(typeof JSON.parse(got.text).message, 'string');
  }
  assert.equal((await a.activity()).length, records);
  assert.equal((await pairs(a))[0].recoveries, 0);
  for (const path of ['//adv', '/adv/', '/adv//', `//rec//${exchange}`]) {
    const method = path.includes('adv') ? 'GET' : 'POST';
    assert.equal((await ask(a, method, path, method === 'GET' ? undefined : somePoint)).status, 200, path);
  }
  const bare = { kty: 'EC', crv: 'P-521', x, y };
  assert.equal((await ask(a, 'POST', rec, bare)).status, 200, 'alg and key_ops may be left out');
});

test('addresses that may not ask are told nothing, and nothing is recorded or made', async () => {
  const a = await testAppliance();
  for (const from of ['192.0.2.1', '8.8.8.8', '172.32.0.1', '2001:db8::1', 'fec0::1']) {
    for (const path of ['/adv', '/adv/x']) {
      const { status, text } = await ask(a, 'GET', path, undefined, { from });
      assert.deepEqual([status, JSON.parse(text)], [403, { message: 'this address may not ask (--tang-allow)' }]);
    }
    assert.equal((await ask(a, 'POST', '/rec/x', somePoint, { from })).status, 403);
  }
  const nowhere = await a.app.fetch(new Request('http://kms.test/adv'), { surface: 'tang', tangClients: allowed });
  assert.equal(nowhere.status, 403);
  const forged = { from: '192.0.2.1', headers: { 'x-forwarded-for': '10.0.0.1' } };
  assert.equal((await ask(a, 'GET', '/adv', undefined, forged)).status, 403);
  assert.deepEqual(await pairs(a), []);
  for (const from of [
    '127.0.0.1',
    '10.9.8.7',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.1.1',
    '::1',
    'fd00::1',
    'fe80::1',
  ]) {
    assert.equal((await ask(a, 'GET', '/adv', undefined, { from })).status, 200, from);
  }
});

test('who asks too often waits, alone, and is told for how long', async () => {
  const a = await testAppliance();
  const { exchange } = await rotate(a);
  const recover = (from: string) => ask(a, 'POST', `/rec/${exchange}`, somePoint, { from });
  for (let n = 0; n < 60; n++) assert.equal((await recover('10.0.0.1')).status, 200);
  const { status, headers, text } = await recover('10.0.0.1');
  assert.deepEqual([status, headers.get('retry-after')], [429, '1']);
  assert.match(JSON.parse(text).message, /too many requests/);
  assert.equal((await recover('10.0.0.2')).status, 200);
  assert.equal((await pairs(a))[0].recoveries, 61);
  a.advance(1000);
  assert.equal((await recover('10.0.0.1')).status, 200);
  assert.equal((await recover('10.0.0.1')).status, 429);
});

test('limits: of each address, of an IPv6 network as one, of all together; none is forgotten too early', () => {
  let now = 0;
  const limits = new TangLimits(() => now);
  const through = (count: number, address: (n: number) => string): number =>
    Array.from({ length: count }, (_, n) => limits.wait(address(n))).filter((wait) => wait === 0).length;
  assert.equal(
    through(100, (n) => `fd00::${n.toString(16)}`),
    60,
  );
  assert.equal(
    through(100, (n) => `fd00:0:0:${(n + 1).toString(16)}::1`),
    100,
  );
  assert.equal(
    through(100, (n) => `10.0.0.${n}`),
    40,
    'of all together: 200',
  );
  now += 1000;
  assert.equal(
    through(100, (n) => `10.0.0.${n}`),
    25,
  );
  now += 3_600_000;
  // More than are remembered: the rest share one count.
  let passed = 0;
  for (let n = 0; n < 5000; n++) {
    now += 100;
    if (limits.wait(`10.1.${n >> 8}.${n & 255}`) === 0) passed++;
  }
  assert.equal(passed, 5000, 'those that are full again make room');
  now -= 10_000_000;
  assert.equal(limits.wait('10.2.0.1'), 0, 'a clock that is set back keeps nobody waiting');
});

test('a tenant is found by its host, and each has keys of its own', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['one.example'] },
      { name: 'other', hosts: ['two.example'] },
      { name: 'third', hosts: ['three.example'], custody: 'client' },
    ],
  });
  const [one, two] = [
    await advertisedAt(a, { host: 'one.example:7500' }),
    await advertisedAt(a, { host: 'two.example' }),
  ];
  assert.notEqual(one.exchange.x, two.exchange.x);
  const [pair] = (await a.call('GET', '/tang/pairs', undefined, { host: 'one.example' })).body.pairs;
  const recover = (host: string) => ask(a, 'POST', `/rec/${pair.exchange}`, somePoint, { host });
  assert.equal((await recover('one.example')).status, 200);
  assert.equal((await recover('two.example')).status, 404);
  assert.equal((await recover('four.example')).status, 404);
  const kept = await ask(a, 'GET', '/adv', undefined, { host: 'three.example' });
  assert.deepEqual([kept.status, JSON.parse(kept.text).message.includes('custody client')], [400, true]);
});

test('sealed, it answers 503 to all that it would answer otherwise', async () => {
  let sealed = false;
  const a = await testAppliance({ sealed: () => sealed });
  const { exchange } = await rotate(a);
  sealed = true;
  assert.equal((await ask(a, 'GET', '/adv')).status, 503);
  assert.equal((await ask(a, 'POST', `/rec/${exchange}`, somePoint)).status, 503);
  sealed = false;
  assert.equal((await ask(a, 'POST', `/rec/${exchange}`, somePoint)).status, 200);
});

test('nothing that is sent or recovered is in a record or in the log', async () => {
  const a = await testAppliance();
  const { exchange } = await rotate(a);
  const { text } = await ask(a, 'POST', `/rec/${exchange}`, somePoint);
  await ask(a, 'POST', `/rec/${exchange}`, { ...somePoint, kty: 'secret-kind' });
  const told = JSON.stringify(await a.activity()) + a.log.join('\n');
  for (const secret of [somePoint.x, somePoint.y, JSON.parse(text).x, JSON.parse(text).y, 'secret-kind']) {
    assert.ok(!told.includes(secret));
  }
  assert.ok(a.log.some((line) => line.includes('"route":"/rec/{thp}"')));
});

test('no request keeps others waiting', async () => {
  const a = await testAppliance();
  const pair = await rotate(a);
  await rotate(a);
  for (const [method, path, body] of [
    ['GET', '/adv'],
    ['GET', `/adv/${pair.thumbprint}`],
    ['POST', `/rec/${pair.exchange}`, somePoint],
    ['POST', `/rec/${pair.exchange}`, { ...somePoint, x: somePoint.y }],
  ] as const) {
    const cost = await longestGo(() => ask(a, method, path, body));
    assert.ok(cost < 200, `${method} ${path} took ${cost} ms`);
  }
});

test('no request makes it fail', async () => {
  const a = await testAppliance();
  const { thumbprint, exchange } = await rotate(a);
  const text = fc.oneof(
    fc.constantFrom(somePoint.x, somePoint.y, '', 'EC', 'P-521', 'ECMR', 'deriveKey', thumbprint),
    fc.string({ unit: 'binary', maxLength: 90 }),
    fc.uint8Array({ minLength: 66, maxLength: 66 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
  );
  const fields = fc.constantFrom('x', 'y', 'kty', 'crv', 'alg', 'key_ops', 'use', 'd', '__proto__');
  const change = fc.dictionary(fields, fc.oneof(text, fc.jsonValue({ maxDepth: 2 }), fc.constant(['deriveKey'])));
  const body = fc.oneof(
    change.map((each) => JSON.stringify({ ...somePoint, ...each })),
    change.map((each) => JSON.stringify(each)),
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc.constant(JSON.stringify(somePoint)),
  );
  const path = fc.oneof(
    fc.constantFrom(`/rec/${exchange}`, `/rec/${thumbprint}`, '/adv', `/adv/${thumbprint}`, '/rec/', '//rec//x//'),
    fc
      .array(fc.oneof(fc.constantFrom('adv', 'rec', '..', '%', '%00', ''), fc.string({ maxLength: 6 })), {
        maxLength: 5,
      })
      .map((parts) => `/${parts.join('/').replace(/[?#\\]/g, '_')}`),
  );
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('POST', 'POST', 'POST', 'GET', 'PUT', 'DELETE', 'OPTIONS'),
      path,
      body,
      async (method, url, raw) => {
        a.advance(5000);
        const got = await ask(a, method, url, undefined, method === 'GET' || method === 'OPTIONS' ? {} : { raw });
        assert.ok(got.status < 500, `${method} ${url} ${raw}: ${got.text}\n${a.log.at(-1)}`);
        statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
      },
    ),
    { numRuns: Number(process.env.KMS_FUZZ_RUNS ?? 1500), seed: Number(process.env.KMS_FUZZ_SEED ?? 20261123) },
  );
  for (const status of [200, 400, 403, 404, 405]) assert.ok((statuses.get(status) ?? 0) > 10, `too few of ${status}`);
});
