// Keys rewrapped by the ring's owner: what the appliance accepts, what it refuses, and that no input loses a key.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { rewrapRing } from '../../src/client/rewrapping.ts';
import { generateRingKey, publicKeyBytes, readPrivateKeys, unwrapRingKey } from '../../src/client/ring-keys.ts';
import { purgeExpired } from '../../src/core/keyrings.ts';
import { toHex } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import type { Kem } from '../../src/model/kems.ts';
import type { Sql } from '../../src/store/sql.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';

interface Ring {
  readonly name: string;
  readonly publicKey: string;
  /** PEM of all private keys that it has had. */
  readonly privateKeys: string;
  readonly activeKey: string;
  /** Ids of the keys that are wrapped to an earlier pair. */
  readonly earlier: readonly string[];
}

async function good(a: Appliance, method: string, path: string, body?: object): Promise<AnyJson> {
  const answer = await a.call(method, path, body);
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`);
  return answer.body;
}

/** A ring with `count` keys whose pair was changed, and which has a key of the new pair. */
async function upgraded(
  a: Appliance,
  name = 'payroll',
  keys = 2,
  kems: readonly [Kem, Kem] = ['x25519', 'mlkem768-x25519'],
) {
  const [first, second] = kems.map((kem) => generateRingKey(kem));
  assert.ok(first && second);
  const earlier = [(await good(a, 'POST', '/ks/keyrings', { name, publicKey: first.publicKey })).key.id];
  while (earlier.length < keys) earlier.push((await good(a, 'POST', '/ks/rotate', { ringname: name })).key.id);
  await good(a, 'PUT', '/ks/config', { ringname: name, config: { publicKey: second.publicKey } });
  const activeKey = (await good(a, 'POST', '/ks/rotate', { ringname: name })).key.id;
  const privateKeys = first.privateKey + second.privateKey;
  return { name, publicKey: second.publicKey, privateKeys, activeKey, earlier } satisfies Ring;
}

const listed = async (a: Appliance, { name }: Ring): Promise<AnyJson[]> =>
  (await good(a, 'GET', `/ks/keyrings/${name}/keys?wrapped=true`)).data;

const hashOf = (wrapped: string): string => createHash('sha256').update(wrapped, 'base64').digest('base64');

const given = (id: string, value: string, iv: string, before: string) => ({
  id,
  wrapped: value,
  iv,
  replaces: hashOf(before),
});

/** The owner's request for a key; its bytes are the key's own unless others are given. */
async function wrapping(a: Appliance, ring: Ring, id: string, bytes?: Uint8Array) {
  const item = (await listed(a, ring)).find((each) => each.id === id);
  const own = bytes ?? (await unwrapRingKey({ privateKey: ring.privateKeys, key: item }));
  const to = publicKeyBytes(ring.publicKey) ?? assert.fail();
  const { wrapped, iv } = wrapRingKey('ks', to, id, own, systemRandom);
  return given(id, wrapped, iv, item.keyData.encrypted.key.value);
}

const keyDataOf = ({ wrapped, iv }: { readonly wrapped: string; readonly iv: string }) => ({
  encrypted: { key: { value: wrapped, encoding: 'base64' } },
  iv,
});

const rewrap = (a: Appliance, { name, publicKey }: Ring, keys: readonly object[]) =>
  a.call('POST', '/ks/rewrap', { ringname: name, publicKey, keys });

const clientOf = (a: Appliance) =>
  createClient({ baseUrl: 'http://kms.test', apiKey: a.root.key, fetch: async (request) => a.app.fetch(request, {}) });

/** The bytes of each key in hexadecimal, as `privateKeys` open them; undefined if they don't. */
async function opened(a: Appliance, ring: Ring, privateKey = ring.privateKeys): Promise<(string | undefined)[]> {
  const bytes = [];
  for (const key of await listed(a, ring)) {
    bytes.push(await unwrapRingKey({ privateKey, key }).then(toHex, () => undefined));
  }
  return bytes;
}

const presentOnly = ({ privateKeys }: Ring): string => privateKeys.slice(privateKeys.indexOf('-----BEGIN', 5));

test('a key wrapped anew is answered so everywhere, with its kem, and as it was on request', async () => {
  const a = await testAppliance();
  const made = generateRingKey();
  await good(a, 'POST', '/ks/keyrings', { name: 'payroll', publicKey: made.publicKey });
  const before = await good(a, 'POST', '/ks/encrypt', { ringname: 'payroll' });
  const bytes = toHex(await unwrapRingKey({ privateKey: made.privateKey, key: before.key }));
  const hybrid = generateRingKey('mlkem768-x25519');
  await good(a, 'PUT', '/ks/config', { ringname: 'payroll', config: { publicKey: hybrid.publicKey } });
  const { key: active } = await good(a, 'POST', '/ks/rotate', { ringname: 'payroll' });
  const ring = {
    name: 'payroll',
    publicKey: hybrid.publicKey,
    privateKeys: made.privateKey + hybrid.privateKey,
    activeKey: active.id,
    earlier: [before.key.id],
  };
  const sent = await wrapping(a, ring, before.key.id);
  assert.deepEqual((await rewrap(a, ring, [sent])).body, { rewrapped: 1 });
  const decrypted = await good(a, 'POST', '/ks/decrypt', { header: before.header });
  const read = await good(a, 'GET', `/ks/keyrings/payroll/keys/${before.key.id}`);
  for (const key of [decrypted.key, read]) {
    assert.deepEqual([key.id, key.kem, key.keyData], [before.key.id, 'mlkem768-x25519', keyDataOf(sent)]);
    assert.equal(toHex(await unwrapRingKey({ privateKey: hybrid.privateKey, key })), bytes);
  }
  assert.equal(read.publicKey, hybrid.publicKey);
  const [first, second] = await listed(a, ring);
  assert.deepEqual([first.kem, first.publicKey, first.keyData], ['mlkem768-x25519', hybrid.publicKey, keyDataOf(sent)]);
  assert.deepEqual(
    first.earlier.map(({ replacedAt: _, ...each }: AnyJson) => each),
    [{ kem: 'x25519', publicKey: made.publicKey, keyData: before.key.keyData }],
  );
  assert.equal(second.earlier, undefined);
  const { data } = await good(a, 'GET', '/ks/keyrings/payroll/keys');
  for (const item of data) assert.ok(!('keyData' in item) && !('earlier' in item));
  // Repeating it changes nothing, whatever it claims to replace.
  assert.deepEqual((await rewrap(a, ring, [sent])).body, { rewrapped: 0 });
  assert.equal((await listed(a, ring))[0].earlier.length, 1);
  // A further public key changes nothing.
  const later = generateRingKey('mlkem768-x25519');
  await good(a, 'PUT', '/ks/config', { ringname: 'payroll', config: { publicKey: later.publicKey } });
  const [again] = await listed(a, ring);
  assert.deepEqual([again.publicKey, again.earlier[0].publicKey], [hybrid.publicKey, made.publicKey]);
});

test('each key has a record of its own, and a refusal has one', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a);
  const ids = ring.earlier;
  const sent = await Promise.all(ids.map((id) => wrapping(a, ring, id)));
  const records = (await a.activity()).length;
  assert.deepEqual((await rewrap(a, ring, sent)).body, { rewrapped: 2 });
  const made = (await a.activity()).slice(0, 2);
  assert.equal((await a.activity()).length, records + 2);
  for (const [n, { action, status, ringname, validAction, props }] of made.reverse().entries()) {
    assert.deepEqual([action, status, ringname, validAction], ['keyring.rewrap', 200, 'payroll', true]);
    const { object, ...rest } = props as AnyJson;
    assert.equal(object.name, 'payroll');
    assert.deepEqual(rest, { objects: [{ type: 'key', id: ids[n] }], changed: ['kem', 'keyData'] });
  }
  assert.ok(!JSON.stringify(made).includes(sent[0]?.wrapped ?? '-'));
  assert.equal((await rewrap(a, ring, sent)).status, 200);
  assert.deepEqual(Object.keys((await a.activity())[0]?.props ?? {}), ['object']);
  assert.equal((await rewrap(a, ring, [{ ...sent[0], replaces: 'x', wrapped: sent[1]?.wrapped }])).status, 400);
  const [refused] = await a.activity();
  assert.deepEqual([refused?.action, refused?.status, refused?.props], ['keyring.rewrap', 400, {}]);
});

test('what is not a wrapping to the ring is refused, all of a request together, and nothing changes', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a);
  const other = await upgraded(a, 'other');
  const [id = '', second = ''] = ring.earlier;
  const fine = await wrapping(a, ring, id);
  const before = await listed(a, ring);
  const value = (wrapped: string) => ({ ...fine, wrapped });
  const bytes = Buffer.from(fine.wrapped, 'base64');
  const field = 'keys.1.wrapped';
  const good2 = await wrapping(a, ring, second);
  for (const [what, key, status, at] of [
    ['nothing', value(''), 400, field],
    ['no base64', value('!!'), 400, field],
    ['base64 with spaces', value(`${fine.wrapped.slice(0, -4)} AAA`), 400, field],
    ['one byte less', value(bytes.subarray(1).toString('base64')), 400, field],
    ['one byte more', value(Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64')), 400, field],
    ['a wrapping by X25519', value(Buffer.alloc(80).toString('base64')), 400, field],
    ['a long one', value(Buffer.alloc(100_000).toString('base64')), 400, field],
    ['another nonce', { ...fine, iv: 'AAAA' }, 400, 'keys.1.iv'],
    ['another hash', { ...fine, replaces: hashOf('AAAA') }, 400, 'keys.1.replaces'],
    ['an empty hash', { ...fine, replaces: '' }, 400, 'keys.1.replaces'],
    ['the active key', given(ring.activeKey, fine.wrapped, fine.iv, ''), 400, 'keys.1.id'],
    ['a key of nobody', { ...fine, id: 'key_1' }, 404, undefined],
    ['a key of another ring', await wrapping(a, other, other.earlier[0] ?? ''), 404, undefined],
    ['the same key twice', { ...good2, wrapped: fine.wrapped }, 400, 'keys.1.replaces'],
    ['no object', 'x', 400, 'keys.1'],
    ['null', null, 400, 'keys.1'],
    ['no id', { ...fine, id: undefined }, 400, 'keys.1'],
    ['no wrapping', { ...fine, wrapped: undefined }, 400, 'keys.1'],
    ['an array', { ...fine, wrapped: [] }, 400, 'keys.1'],
  ] as const) {
    const answer = await rewrap(a, ring, [good2, key as object]);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    assert.deepEqual(Object.keys(answer.body.errors ?? {}), at === undefined ? [] : [at], `${what}: ${answer.text}`);
    assert.ok(answer.text.length < 1000);
  }
  for (const [what, body, status] of [
    ['no keys', { keys: undefined }, 400],
    ['none', { keys: [] }, 400],
    ['too many', { keys: Array(101).fill(fine) }, 400],
    ['another public key', { publicKey: other.publicKey }, 400],
    ['no public key', { publicKey: 'x' }, 400],
    ['another ring', { ringname: 'other' }, 400],
    ['no ring', { ringname: 'nobody' }, 404],
  ] as const) {
    const whole = { ringname: ring.name, publicKey: ring.publicKey, keys: [fine], ...body };
    assert.equal((await a.call('POST', '/ks/rewrap', whole)).status, status, what);
  }
  assert.deepEqual(await listed(a, ring), before);
  for (const [flags, status] of [
    [['keyring.payroll.read', 'keyring.payroll.rotate', 'keyring.other.config'], 403],
    [['keyring.payroll.config'], 200],
  ] as const) {
    const { key } = await a.keyWith(...flags);
    const body = { ringname: ring.name, publicKey: ring.publicKey, keys: [fine] };
    assert.equal((await a.call('POST', '/ks/rewrap', body, { key })).status, status, flags.join());
  }
});

test('a ring is to have a key of its present pair first, and none goes back from hybrid to X25519', async () => {
  const a = await testAppliance();
  const [first, second] = [generateRingKey(), generateRingKey('mlkem768-x25519')];
  const { key } = await good(a, 'POST', '/ks/keyrings', { name: 'r', publicKey: first.publicKey });
  const earlier = (await good(a, 'POST', '/ks/rotate', { ringname: 'r' })) && [key.id];
  await good(a, 'PUT', '/ks/config', { ringname: 'r', config: { publicKey: second.publicKey } });
  const ring = { name: 'r', publicKey: second.publicKey, privateKeys: first.privateKey, activeKey: '', earlier };
  const unrotated = await rewrap(a, ring, [await wrapping(a, ring, key.id)]);
  assert.deepEqual([unrotated.status, Object.keys(unrotated.body.errors)], [400, ['ringname']]);
  const back = await upgraded(a, 'back', 1, ['mlkem768-x25519', 'x25519']);
  const answer = await rewrap(a, back, [await wrapping(a, back, back.earlier[0] ?? '')]);
  assert.deepEqual(
    [answer.status, answer.body.errors],
    [400, { 'keys.0.id': 'a key that is wrapped by mlkem768-x25519 is not wrapped by x25519 again' }],
  );
});

test('whatever is sent, how a key was wrapped stays; no more than 32 times', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a, 'payroll', 1);
  const [id = ''] = ring.earlier;
  const [{ keyData: original }] = await listed(a, ring);
  const sent: string[] = [];
  for (let n = 0; n < 32; n++) {
    const [item] = await listed(a, ring);
    const value = Buffer.alloc(1168, n + 1).toString('base64');
    sent.push(value);
    const key = given(id, value, original.iv, item.keyData.encrypted.key.value);
    assert.equal((await rewrap(a, ring, [key])).status, 200);
  }
  const [item] = await listed(a, ring);
  assert.deepEqual(
    [...item.earlier.map((each: AnyJson) => each.keyData), item.keyData].map((each) => each.encrypted.key.value),
    [original.encrypted.key.value, ...sent],
  );
  const more = await rewrap(a, ring, [await wrapping(a, ring, id, new Uint8Array(32))]);
  assert.match(more.body.message, /^keys\.0\.id: the key was rewrapped 32 times, which is the limit$/);
});

test('a key that others filled up is put back by its owner, however often, and the first wrapping stays known', async () => {
  for (const isRewrapped of [true, false]) {
    const a = await testAppliance();
    const ring = await upgraded(a, 'payroll', 1);
    const [id = ''] = ring.earlier;
    const before = await opened(a, ring);
    const work = {
      client: clientOf(a),
      ring: (await good(a, 'GET', '/ks/keyrings/payroll')).ring,
      privateKeys: readPrivateKeys(ring.privateKeys, 'it'),
      progress: async () => {},
    };
    if (isRewrapped) assert.deepEqual(await rewrapRing(work), { rewrapped: 1, left: 0 });
    const [{ keyData: original }] = isRewrapped ? (await listed(a, ring))[0].earlier : await listed(a, ring);
    const first = original.encrypted.key.value;
    const send = async (wrapped: string) => {
      const [item] = await listed(a, ring);
      return rewrap(a, ring, [given(id, wrapped, original.iv, item.keyData.encrypted.key.value)]);
    };
    const garbage = (n: number) => Buffer.alloc(1168, n + 1).toString('base64');
    // One of them opens, to bytes that are not the key's.
    const planted = (await wrapping(a, ring, id, new Uint8Array(32).fill(7))).wrapped;
    assert.equal((await send(planted)).status, 200);
    for (let n = 0; (await send(garbage(n))).status === 200; n++) assert.ok(n < 32);
    const full = (await listed(a, ring))[0].earlier.length;
    assert.equal(full, 32);
    // Others are still refused, and so is a request that does not name what it replaces.
    assert.equal((await send(garbage(99))).status, 400);
    assert.equal((await rewrap(a, ring, [given(id, first, original.iv, 'AAAA')])).status, 400);
    for (let n = 0; n < 3; n++) {
      const done = await rewrapRing(work);
      assert.deepEqual(done, isRewrapped ? { rewrapped: 1, left: 0 } : { rewrapped: 1, left: 1, full: 1 });
      assert.deepEqual(await opened(a, ring), before);
      const record = (await a.activity()).find(({ action }) => action === 'keyring.rewrap');
      const { object: _, ...props }: AnyJson = record?.props ?? {};
      const changed = isRewrapped ? ['keyData'] : ['kem', 'keyData'];
      assert.deepEqual([record?.status, props], [200, { objects: [{ type: 'key', id }], changed }]);
      // A holder of the .config flag puts garbage, the first and the planted wrapping back in turn: the owner accepts
      // none of them as genuine.
      for (const wrapped of [garbage(3), first, planted, ...(n === 1 ? [garbage(5)] : [])]) {
        if ((await listed(a, ring))[0].keyData.encrypted.key.value === wrapped) continue;
        const answer = await send(wrapped);
        assert.deepEqual([answer.status, answer.body.rewrapped], [200, 1], answer.text);
        const [item] = await listed(a, ring);
        assert.equal(item.keyData.encrypted.key.value, wrapped);
        const values = item.earlier.map((each: AnyJson) => each.keyData.encrypted.key.value);
        assert.equal(values[0], first);
        assert.equal(new Set([...values, wrapped]).size, 33);
        assert.ok(values.length === 32 || (wrapped === first && values.length === 33));
      }
    }
    assert.notDeepEqual(await opened(a, ring), before);
    assert.equal((await rewrapRing(work)).rewrapped, 1);
    assert.deepEqual(await opened(a, ring), before);
  }
});

test('the owner puts right what others put in a key, by how the appliance wrapped it at first', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a, 'payroll', 5);
  const { earlier } = ring;
  const before = await opened(a, ring);
  const known = new Uint8Array(32).fill(7);
  // Before the owner's turn: another key's bytes, garbage, and a correct one.
  const garbage = async (id: string) => {
    const made = await wrapping(a, ring, id);
    return { ...made, wrapped: Buffer.alloc(1168, 9).toString('base64') };
  };
  assert.equal(
    (
      await rewrap(a, ring, [
        await wrapping(a, ring, earlier[0] ?? '', known),
        await garbage(earlier[1] ?? ''),
        await wrapping(a, ring, earlier[2] ?? ''),
      ])
    ).status,
    200,
  );
  assert.deepEqual((await opened(a, ring)).slice(0, 3), ['07'.repeat(32), undefined, before[2]]);
  const work = {
    client: clientOf(a),
    ring: (await good(a, 'GET', '/ks/keyrings/payroll')).ring,
    progress: async () => {},
  };
  const privateKeys = readPrivateKeys(ring.privateKeys, 'it');
  const [x25519, hybrid] = privateKeys;
  assert.ok(x25519 && hybrid);
  // Without the earlier private key none of this can be judged, and nothing is changed.
  assert.deepEqual(await rewrapRing({ ...work, privateKeys: [hybrid] }), { rewrapped: 0, left: 3 });
  assert.deepEqual(await rewrapRing({ ...work, privateKeys }), { rewrapped: 4, left: 0 });
  assert.deepEqual(await opened(a, ring, presentOnly(ring)), before);
  assert.deepEqual(await rewrapRing({ ...work, privateKeys }), { rewrapped: 0, left: 0 });
  // After the owner: the agreement of all that open is enough, if others planted none that opens.
  assert.equal(
    (await rewrap(a, ring, [await garbage(earlier[3] ?? ''), await wrapping(a, ring, earlier[4] ?? '', known)])).status,
    200,
  );
  assert.deepEqual(await rewrapRing({ ...work, privateKeys: [hybrid] }), { rewrapped: 1, left: 2 });
  assert.deepEqual((await opened(a, ring)).slice(0, 4), before.slice(0, 4));
  assert.deepEqual(await rewrapRing({ ...work, privateKeys }), { rewrapped: 1, left: 0 });
  assert.deepEqual(await opened(a, ring), before);
});

test('a change from one hybrid pair to another too; two at once agree, and one that was cut off goes on', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a, 'payroll', 120, ['mlkem768-x25519', 'mlkem768-x25519']);
  const before = await opened(a, ring);
  const work = {
    client: clientOf(a),
    ring: (await good(a, 'GET', '/ks/keyrings/payroll')).ring,
    privateKeys: readPrivateKeys(ring.privateKeys, 'it'),
  };
  const cut = new Error('killed');
  await assert.rejects(rewrapRing({ ...work, progress: async () => Promise.reject(cut) }), (error) => error === cut);
  assert.equal((await listed(a, ring)).filter(({ earlier }) => earlier).length, 100);
  const both = await Promise.all([1, 2].map(() => rewrapRing({ ...work, progress: async () => {} })));
  assert.equal(
    both.reduce((sum, { rewrapped }) => sum + rewrapped, 0),
    20,
  );
  assert.ok(both.every(({ left }) => left === 0));
  const items: AnyJson[] = [];
  for (let cursor = ''; ; ) {
    const { data, pagination } = await good(a, 'GET', `/ks/keyrings/payroll/keys?wrapped=true&limit=10000${cursor}`);
    assert.ok(data.length <= 200);
    items.push(...data);
    if (!pagination.hasMore) break;
    cursor = `&cursor=${pagination.nextCursor}`;
  }
  assert.equal(items.length, 121);
  for (const { id, publicKey, earlier } of items) {
    assert.deepEqual([publicKey, earlier?.length], [ring.publicKey, id === ring.activeKey ? undefined : 1]);
  }
  assert.deepEqual(await opened(a, ring, presentOnly(ring)), before);
});

test('nothing is wrapped anew to X25519, whatever the appliance says that it is', async () => {
  const a = await testAppliance();
  const ring = await upgraded(a, 'payroll', 2, ['x25519', 'x25519']);
  const before = await listed(a, ring);
  const said = { ...(await good(a, 'GET', '/ks/keyrings/payroll')).ring, kem: 'mlkem768-x25519' };
  const privateKeys = readPrivateKeys(ring.privateKeys, 'it');
  await assert.rejects(
    rewrapRing({ client: clientOf(a), ring: said, privateKeys, progress: async () => {} }),
    /is not a hybrid one: nothing was sealed/,
  );
  assert.deepEqual(await listed(a, ring), before);
});

test('a refusal of a key that was not sent ends it', { timeout: 60_000 }, async () => {
  const a = await testAppliance();
  const ring = await upgraded(a);
  let asked = 0;
  const client = createClient({
    baseUrl: 'http://kms.test',
    apiKey: a.root.key,
    async fetch(request) {
      if (!request.url.endsWith('/ks/rewrap')) return a.app.fetch(request, {});
      asked++;
      const message = 'keys.7.id: it is not there';
      return Response.json({ message, errors: { 'keys.7.id': 'it is not there' } }, { status: 400 });
    },
  });
  const { ring: shown } = await client.getKeyring({ ringname: ring.name });
  const privateKeys = readPrivateKeys(ring.privateKeys, 'it');
  await assert.rejects(rewrapRing({ client, ring: shown, privateKeys, progress: async () => {} }), /keys\.7\.id/);
  assert.equal(asked, 1);
});

test('a ring brought back has all of it, and one that is erased none', async () => {
  let sql: Sql | undefined;
  const a = await testAppliance({
    onSql: (given) => {
      sql = given;
    },
  });
  const ring = await upgraded(a);
  const work = {
    client: clientOf(a),
    ring: (await good(a, 'GET', '/ks/keyrings/payroll')).ring,
    progress: async () => {},
  };
  await rewrapRing({ ...work, privateKeys: readPrivateKeys(ring.privateKeys, 'it') });
  const before = await listed(a, ring);
  const { id } = await good(a, 'DELETE', '/ks/keyrings/payroll');
  assert.equal((await rewrap(a, ring, [given('x', '', '', '')])).status, 404);
  await good(a, 'POST', `/ks/keyrings/${id}/restore`, {});
  assert.deepEqual(await listed(a, ring), before);
  await good(a, 'DELETE', '/ks/keyrings/payroll');
  a.advance(31 * 86_400_000);
  const { store } = a.tenants[0]?.handle ?? assert.fail();
  assert.equal(await purgeExpired(store, a.world.now()), 1);
  const left = await store.transaction(() => sql?.get('SELECT COUNT(*) AS n FROM earlier_wrappings'));
  assert.deepEqual(left, { n: 0 });
});

test("another tenant's keys are none of this one", async () => {
  const tenants = ['one', 'two'].map((name) => ({ name, hosts: [`${name}.test`] }));
  const a = await testAppliance({ tenants });
  const as = (n: number): Appliance => ({
    ...a,
    call: (method, path, body) =>
      a.call(method, path, body, { host: `${tenants[n]?.name}.test`, key: a.tenants[n]?.root.key ?? '' }),
  });
  const [one, two] = [await upgraded(as(0)), await upgraded(as(1))];
  const sent = await wrapping(as(1), two, two.earlier[0] ?? '');
  assert.equal((await rewrap(as(0), { ...one, publicKey: two.publicKey }, [sent])).status, 400);
  assert.equal((await rewrap(as(0), one, [sent])).status, 404);
});
