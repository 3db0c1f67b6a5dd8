// Keyrings from creation to erasure, their keys and their configuration.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAccount } from '../../src/core/accounts.ts';
import { createApiKey, deleteApiKey, updateApiKeyById } from '../../src/core/api-keys.ts';
import { authenticate, Bearer } from '../../src/core/credential.ts';
import {
  createAsymKeyring,
  createKeyring,
  deleteKeyring,
  getAsymKey,
  getConfig,
  getKey,
  getKeyring,
  listKeyrings,
  listKeys,
  purgeExpired,
  putConfig,
  restoreKeyring,
  rotateAsymKeyring,
  rotateKeyring,
} from '../../src/core/keyrings.ts';
import { restorableFor } from '../../src/core/rings.ts';
import { fromBase64, toBase64 } from '../../src/crypto/bytes.ts';
import { hybridKeyToSpki, parseHybridKey, parseSeed } from '../../src/crypto/hybrid-keys.ts';
import { unwrapRingKey } from '../../src/crypto/ring-key.ts';
import { xWingPublicKey } from '../../src/crypto/x-wing.ts';
import { generateX25519, parsePrivateKey, pkcs8ToPem, publicKeyToSpki } from '../../src/crypto/x25519.ts';
import { refusal, seededRandom, testTenant } from '../support/context.ts';

const page = { limit: 100 };

test('a new ring answers itself, its key and the private key that opens it', async () => {
  const tenant = await testTenant();
  const { ring, key, privateKey } = await tenant.call(createKeyring, {
    name: 'Payroll.EU',
    algo: 'aes256',
    props: { team: 'hr' },
    keyProps: { level: 3 },
  });
  assert.deepEqual(Object.keys(ring).sort(), [
    'activeAlgorithm',
    'activeKey',
    'createdAt',
    'custody',
    'displayName',
    'id',
    'kem',
    'name',
    'props',
    'publicKey',
    'updatedAt',
  ]);
  assert.match(ring.id, /^ring_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(ring.name, 'payroll.eu');
  assert.equal(ring.displayName, 'Payroll.EU');
  assert.equal(ring.activeKey, key.id);
  assert.equal(ring.activeAlgorithm, 'aes256');
  assert.equal(ring.createdAt, '2026-01-02T03:04:05.678Z');
  assert.equal(ring.updatedAt, ring.createdAt);
  assert.deepEqual(ring.props, { team: 'hr' });
  assert.deepEqual(Object.keys(key).sort(), ['id', 'kem', 'keyData', 'props', 'type']);
  assert.equal(key.type, 'aes256');
  assert.deepEqual(key.props, { level: 3 });
  assert.deepEqual(Object.keys(key.keyData).sort(), ['encrypted', 'iv']);
  assert.equal(key.keyData.encrypted.key.encoding, 'base64');
  assert.equal(fromBase64(key.keyData.iv)?.length, 12);
  const opener = parsePrivateKey(privateKey ?? '');
  assert.ok(opener);
  assert.equal((await unwrapRingKey('ks', opener, key.id, key.keyData.encrypted.key.value))?.length, 32);
  assert.equal(await unwrapRingKey('asym', opener, key.id, key.keyData.encrypted.key.value), undefined);
});

test('a given public key is used in any of its forms, and no private key is answered', async () => {
  const tenant = await testTenant();
  const pair = generateX25519(seededRandom(7));
  const spki = publicKeyToSpki(pair.publicKey);
  const pem = `-----BEGIN PUBLIC KEY-----\n${toBase64(spki)}\n-----END PUBLIC KEY-----\n`;
  const forms = { spki: toBase64(spki), pem, raw: toBase64(pair.publicKey) };
  for (const [name, publicKey] of Object.entries(forms)) {
    const made = await tenant.call(createKeyring, { name, publicKey });
    assert.equal('privateKey' in made, false);
    assert.equal(made.ring.publicKey, toBase64(spki));
    assert.ok(await unwrapRingKey('ks', pair.privateKey, made.key.id, made.key.keyData.encrypted.key.value));
  }
});

test('what is no X25519 public key is refused by name', async () => {
  const tenant = await testTenant();
  const wrong = ['', 'x', toBase64(new Uint8Array(32)), toBase64(Uint8Array.of(1, ...new Uint8Array(31)))];
  wrong.push(
    toBase64(new Uint8Array(31).fill(9)),
    toBase64(new Uint8Array(65).fill(4)),
    pkcs8ToPem(new Uint8Array(48)),
  );
  for (const publicKey of wrong) {
    const error = await refusal('invalid', tenant.call(createKeyring, { name: 'r', publicKey }));
    assert.ok(error.fields?.publicKey, publicKey);
  }
  assert.deepEqual((await tenant.list(listKeyrings, { page })).items, []);
});

test('ring names follow the rule', async () => {
  const tenant = await testTenant();
  for (const name of ['', '.a', '-a', '_a', 'a b', 'a/b', 'a*', '*', 'ä', 'a\n', 'a\0', 'x'.repeat(129)]) {
    const error = await refusal('invalid', tenant.call(createKeyring, { name }));
    assert.ok(error.fields?.name, name);
  }
  for (const name of ['a', '0', 'A.b_C-d', 'x'.repeat(128)]) await tenant.call(createKeyring, { name });
});

test('a name is taken without regard to case, in its own service alone', async () => {
  const tenant = await testTenant();
  await tenant.call(createKeyring, { name: 'Payroll' });
  await refusal('conflict', tenant.call(createKeyring, { name: 'PAYROLL' }));
  await tenant.call(createAsymKeyring, { name: 'payroll' });
  await refusal('conflict', tenant.call(createAsymKeyring, { name: 'payRoll' }));
  assert.equal((await tenant.call(getKeyring, { ring: { name: 'pAyroll' } })).ring.displayName, 'Payroll');
});

test('rings are found by name or id, and unknown otherwise', async () => {
  const tenant = await testTenant();
  const { ring } = await tenant.call(createKeyring, { name: 'a' });
  const asym = await tenant.call(createAsymKeyring, { name: 'b' });
  assert.deepEqual(await tenant.call(getKeyring, { ring: { name: 'A' } }), { ring });
  assert.deepEqual(await tenant.call(getKeyring, { ring: { id: ring.id } }), { ring });
  for (const ref of [{ name: 'b' }, { id: asym.ring.id }, { id: 'a' }, { name: ring.id }, { name: '' }, { id: '' }]) {
    await refusal('not-found', tenant.call(getKeyring, { ring: ref }));
  }
});

test('lists are pages, oldest first', async () => {
  const tenant = await testTenant();
  for (const name of ['c', 'a', 'b']) await tenant.call(createKeyring, { name });
  const first = await tenant.list(listKeyrings, { page: { limit: 2 } });
  assert.deepEqual(
    first.items.map((ring) => ring.name),
    ['c', 'a'],
  );
  assert.ok(first.next !== undefined);
  await tenant.call(deleteKeyring, { name: 'c' });
  const second = await tenant.list(listKeyrings, { page: { limit: 2, after: first.next } });
  assert.deepEqual(
    second.items.map((ring) => ring.name),
    ['b'],
  );
  assert.equal('next' in second, false);
  const exact = await tenant.list(listKeyrings, { page: { limit: 2 } });
  assert.equal('next' in exact, false);
});

test('rotation keeps the old key and gives the new one the configured props', async () => {
  const tenant = await testTenant();
  const { key: first, ring } = await tenant.call(createKeyring, { name: 'a', keyProps: { n: 1 } });
  tenant.advance(1000);
  await tenant.call(putConfig, { ringname: 'a', config: { key: { props: { n: 2 } } } });
  const { key: second } = await tenant.call(rotateKeyring, { ringname: 'A' });
  assert.notEqual(second.id, first.id);
  assert.deepEqual(second.props, { n: 2 });
  const now = (await tenant.call(getKeyring, { ring: { name: 'a' } })).ring;
  assert.equal(now.activeKey, second.id);
  assert.equal(now.updatedAt, '2026-01-02T03:04:06.678Z');
  assert.equal(now.createdAt, ring.createdAt);
  const wrappedTo = { kem: 'x25519', publicKey: ring.publicKey };
  assert.deepEqual((await tenant.list(listKeys, { ring: { id: ring.id }, page })).items, [
    { id: first.id, type: 'aes256', ...wrappedTo, props: { n: 1 }, createdAt: ring.createdAt },
    { id: second.id, type: 'aes256', ...wrappedTo, props: { n: 2 }, createdAt: '2026-01-02T03:04:06.678Z' },
  ]);
  const { publicKey } = ring;
  assert.deepEqual(await tenant.call(getKey, { ring: { name: 'a' }, keyId: first.id }), { ...first, publicKey });
  await refusal('not-found', tenant.call(rotateKeyring, { ringname: 'b' }));
});

test('a key of another ring is none of this one', async () => {
  const tenant = await testTenant();
  const { key } = await tenant.call(createKeyring, { name: 'a' });
  await tenant.call(createKeyring, { name: 'b' });
  await refusal('not-found', tenant.call(getKey, { ring: { name: 'b' }, keyId: key.id }));
  await refusal('not-found', tenant.call(getKey, { ring: { name: 'a' }, keyId: 'key_x' }));
  await refusal('not-found', tenant.call(getAsymKey, { ring: { name: 'a' }, keyId: key.id }));
});

test('the configuration answers whole and changes by what it names', async () => {
  const tenant = await testTenant();
  await tenant.call(createKeyring, { name: 'a', props: { x: 1, y: { z: 2 } }, keyProps: { k: 1 } });
  const config = {
    props: { x: 1, y: { z: 2 } },
    key: { props: { k: 1 } },
    algos: { aes256: { maxEncryptCount: 2 ** 32 } },
    rotateAfter: null,
    offlineDecrypt: false,
  };
  assert.deepEqual(await tenant.call(getConfig, { ring: { name: 'a' } }), { config });
  const put = (change: object) => tenant.call(putConfig, { ringname: 'A', config: change });
  assert.deepEqual(await put({}), { config });
  assert.deepEqual((await put({ props: { y: {} } })).config, { ...config, props: { y: {} } });
  assert.deepEqual((await put({ key: {} })).config.key, config.key);
  assert.deepEqual((await put({ algos: { aes256: { maxEncryptCount: 5 } } })).config, {
    ...config,
    props: { y: {} },
    algos: { aes256: { maxEncryptCount: 5 } },
  });
  assert.deepEqual((await tenant.call(getKeyring, { ring: { name: 'a' } })).ring.props, { y: {} });
  for (const maxEncryptCount of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    await refusal('invalid', put({ algos: { aes256: { maxEncryptCount } } }));
  }
  await refusal('not-found', tenant.call(putConfig, { ringname: 'b', config: {} }));
  await refusal('not-found', tenant.call(getConfig, { ring: { name: 'b' } }));
});

test('props keep keys with names that objects have', async () => {
  const tenant = await testTenant();
  const props = JSON.parse('{"__proto__":{"a":1},"constructor":2,"toString":null}');
  await tenant.call(createKeyring, { name: 'a', props });
  const { ring } = await tenant.call(getKeyring, { ring: { name: 'a' } });
  assert.equal(JSON.stringify(ring.props), JSON.stringify(props));
});

test('a deleted ring is gone, its name free, and it comes back under its id', async () => {
  const tenant = await testTenant();
  const { ring } = await tenant.call(createKeyring, { name: 'A', props: { p: 1 } });
  assert.deepEqual(await tenant.call(deleteKeyring, { name: 'a' }), { name: 'a', id: ring.id });
  await refusal('not-found', tenant.call(deleteKeyring, { name: 'a' }));
  await refusal('not-found', tenant.call(getKeyring, { ring: { id: ring.id } }));
  await tenant.call(createKeyring, { name: 'a' });
  await refusal('conflict', tenant.call(restoreKeyring, { id: ring.id }));
  await tenant.call(deleteKeyring, { name: 'a' });
  assert.deepEqual(await tenant.call(restoreKeyring, { id: ring.id }), { ring });
  assert.deepEqual(await tenant.call(getKeyring, { ring: { name: 'a' } }), { ring });
  await refusal('not-found', tenant.call(restoreKeyring, { id: ring.id }));
  await refusal('not-found', tenant.call(restoreKeyring, { id: 'ring_x' }));
});

test('30 days later it is erased', async () => {
  const tenant = await testTenant();
  const { ring, key } = await tenant.call(createKeyring, { name: 'a' });
  await tenant.call(deleteKeyring, { name: 'a' });
  tenant.advance(restorableFor - 1);
  assert.equal(await purgeExpired(tenant.store, tenant.world.now()), 0);
  tenant.advance(1);
  await refusal('not-found', tenant.call(restoreKeyring, { id: ring.id }));
  assert.equal(await purgeExpired(tenant.store, tenant.world.now()), 1);
  assert.equal(await tenant.run(({ tx }) => tx.rings.byId('ks', ring.id)), undefined);
  assert.equal(await tenant.run(({ tx }) => tx.ringKeys.byId(ring.id, key.id)), undefined);
});

test('where rings are limited, so are those that are made and deleted in turn', async () => {
  const tenant = await testTenant({ limits: { keyrings: 2 } });
  for (let i = 0; i < 100; i++) {
    await tenant.call(createKeyring, { name: 'a' });
    await tenant.call(deleteKeyring, { name: 'a' });
  }
  for (const made of [tenant.call(createKeyring, { name: 'a' }), tenant.call(createAsymKeyring, { name: 'a' })]) {
    const error = await refusal('quota', made);
    assert.equal(error.message, 'the limit of 100 deleted keyrings that can still be restored is reached');
  }
  tenant.advance(restorableFor);
  await tenant.call(createKeyring, { name: 'a' });
  await tenant.call(deleteKeyring, { name: 'a' });
});

test('a ring that another active key names is not deleted', async () => {
  const tenant = await testTenant();
  const account = await tenant.call(createAccount, { uid: 'u' });
  const make = (...flags: string[]) =>
    tenant.call(createApiKey, {
      account: { id: account.id },
      flags: Object.fromEntries(flags.map((flag) => [flag, true])),
    });
  await tenant.call(createKeyring, { name: 'pay.roll' });
  for (const flag of ['*', 'keyring.*', 'keyring.*.*', 'keyring.*.read', 'keyring.pay.read', 'asym.pay.roll.read']) {
    await make(flag);
  }
  const user = await make('Keyring.Pay.Roll.encrypt');
  const own = await make('keyring.pay.roll.*');
  const credential = await tenant.run(({ tx, world }) => authenticate(tx, new Bearer(own.key), {}, world.now()));
  assert.ok(credential);
  await refusal('conflict', tenant.call(deleteKeyring, { name: 'Pay.Roll' }));
  await refusal('conflict', tenant.call(deleteKeyring, { name: 'pay.roll' }, credential.caller));
  await tenant.call(updateApiKeyById, { apikeyid: user.keyid, op: 'merge', active: false });
  await refusal('conflict', tenant.call(deleteKeyring, { name: 'pay.roll' }));
  await tenant.call(deleteKeyring, { name: 'pay.roll' }, credential.caller);
  await tenant.call(createKeyring, { name: 'pay.roll' });
  await tenant.call(deleteApiKey, { key: own.key });
  await tenant.call(deleteKeyring, { name: 'pay.roll' });
});

test('limits hold for rings and for keys in a ring, deleted rings aside', async () => {
  const tenant = await testTenant({ limits: { keyrings: 2, keysPerRing: 2 } });
  const { ring } = await tenant.call(createKeyring, { name: 'a' });
  await tenant.call(createAsymKeyring, { name: 'a' });
  await refusal('quota', tenant.call(createKeyring, { name: 'b' }));
  await tenant.call(deleteKeyring, { name: 'a' });
  await tenant.call(createKeyring, { name: 'b' });
  await refusal('quota', tenant.call(restoreKeyring, { id: ring.id }));
  await tenant.call(rotateKeyring, { ringname: 'b' });
  await refusal('quota', tenant.call(rotateKeyring, { ringname: 'b' }));
  assert.equal((await tenant.list(listKeys, { ring: { name: 'b' }, page })).items.length, 2);
});

test('a hybrid ring: a pair made here or a key that is given, and keys wrapped to it, of either service', async () => {
  const tenant = await testTenant();
  const kem = 'mlkem768-x25519';
  const made = await tenant.call(createKeyring, { name: 'made', kem });
  assert.equal(made.ring.kem, kem);
  const seed = parseSeed(made.privateKey ?? '') ?? assert.fail('no seed');
  assert.deepEqual(parseHybridKey(made.ring.publicKey), xWingPublicKey(seed));
  const opened = await unwrapRingKey('ks', seed, made.key.id, made.key.keyData.encrypted.key.value);
  assert.equal(opened?.length, 32);
  const { key: next } = await tenant.call(rotateKeyring, { ringname: 'made' });
  assert.ok(await unwrapRingKey('ks', seed, next.id, next.keyData.encrypted.key.value));

  const publicKey = toBase64(xWingPublicKey(seed));
  const given = await tenant.call(createKeyring, { name: 'given', publicKey });
  assert.deepEqual([given.ring.kem, given.ring.publicKey, given.privateKey], [kem, made.ring.publicKey, undefined]);
  assert.ok(await unwrapRingKey('ks', seed, given.key.id, given.key.keyData.encrypted.key.value));
  assert.equal((await tenant.call(createKeyring, { name: 'plain' })).ring.kem, 'x25519');

  const asym = await tenant.call(createAsymKeyring, { name: 'devices', kem });
  const asymSeed = parseSeed(asym.privateKey) ?? assert.fail('no seed');
  assert.ok(await unwrapRingKey('asym', asymSeed, asym.key.id, asym.key.keyData.key));

  const overflowing = xWingPublicKey(seed);
  overflowing.fill(0xff, 0, 3);
  for (const input of [
    { publicKey, kem: 'x25519' as const },
    { publicKey: toBase64(generateX25519(seededRandom(1)).publicKey), kem } as const,
    { publicKey: toBase64(overflowing) },
    { publicKey: toBase64(overflowing.subarray(1)), kem } as const,
  ]) {
    await refusal('invalid', tenant.call(createKeyring, { name: 'refused', ...input }));
  }
});

test('whoever names no kem gets the default, which a public key that is given overrules', async () => {
  const tenant = await testTenant({ defaultKem: 'mlkem768-x25519' });
  const { ring, key } = await tenant.call(createKeyring, { name: 'a' });
  assert.deepEqual([ring.kem, key.kem], ['mlkem768-x25519', 'mlkem768-x25519']);
  assert.equal((await tenant.call(createAsymKeyring, { name: 'a' })).ring.kem, 'mlkem768-x25519');
  assert.equal((await tenant.call(createKeyring, { name: 'b', kem: 'x25519' })).ring.kem, 'x25519');
  const publicKey = toBase64(generateX25519(seededRandom(1)).publicKey);
  assert.equal((await tenant.call(createKeyring, { name: 'c', publicKey })).ring.kem, 'x25519');
});

test('a ring that gets another public key: later keys are wrapped to it, each key tells to which it is', async () => {
  const tenant = await testTenant();
  const random = seededRandom(7);
  const { ring, key: first } = await tenant.call(createKeyring, { name: 'a' });
  const pairs = Array.from({ length: 3 }, () => {
    const seed = random(32);
    const publicKey = toBase64(hybridKeyToSpki(xWingPublicKey(seed)));
    return { seed, publicKey };
  });
  const give = (publicKey: string) => tenant.call(putConfig, { ringname: 'A', config: { publicKey } });
  const ringNow = async () => (await tenant.call(getKeyring, { ring: { name: 'a' } })).ring;
  const keysNow = async () =>
    (await tenant.list(listKeys, { ring: { name: 'a' }, page })).items.map(({ id, kem, publicKey }) => [
      id,
      kem,
      publicKey,
    ]);
  const [one, two, three] = pairs;
  assert.ok(one && two && three);
  tenant.advance(1000);
  await give(one.publicKey);
  assert.deepEqual(await ringNow(), {
    ...ring,
    kem: 'mlkem768-x25519',
    publicKey: one.publicKey,
    updatedAt: '2026-01-02T03:04:06.678Z',
  });
  assert.deepEqual(await keysNow(), [[first.id, 'x25519', ring.publicKey]]);
  // No key was wrapped to the previous public key: it is not kept.
  await give(two.publicKey);
  await give(two.publicKey);
  const { key: second } = await tenant.call(rotateKeyring, { ringname: 'a' });
  assert.equal(second.kem, 'mlkem768-x25519');
  assert.ok(await unwrapRingKey('ks', two.seed, second.id, second.keyData.encrypted.key.value));
  assert.equal(await unwrapRingKey('ks', one.seed, second.id, second.keyData.encrypted.key.value), undefined);
  await give(three.publicKey);
  const { key: third } = await tenant.call(rotateKeyring, { ringname: 'a' });
  await give(ring.publicKey);
  const { key: fourth } = await tenant.call(rotateKeyring, { ringname: 'a' });
  const wanted = [
    [first.id, 'x25519', ring.publicKey],
    [second.id, 'mlkem768-x25519', two.publicKey],
    [third.id, 'mlkem768-x25519', three.publicKey],
    [fourth.id, 'x25519', ring.publicKey],
  ];
  assert.deepEqual(await keysNow(), wanted);
  const withUsage = await tenant.list(listKeys, { ring: { name: 'a' }, usage: true, page });
  assert.deepEqual(
    withUsage.items.map(({ id, kem, publicKey }) => [id, kem, publicKey]),
    wanted,
  );
  for (const [keyId = '', kem, publicKey] of wanted) {
    const key = await tenant.call(getKey, { ring: { name: 'a' }, keyId });
    assert.deepEqual([key.kem, key.publicKey], [kem, publicKey]);
  }
  for (const publicKey of ['', 'AAAA', toBase64(new Uint8Array(32)), three.publicKey.slice(4)]) {
    const error = await refusal('invalid', give(publicKey));
    assert.deepEqual(Object.keys(error.fields ?? {}), ['config.publicKey']);
  }
  await refusal('not-found', tenant.call(putConfig, { ringname: 'b', config: { publicKey: one.publicKey } }));
  assert.deepEqual(await keysNow(), wanted);

  // Erasing a ring erases its earlier public keys.
  await tenant.call(deleteKeyring, { name: 'a' });
  tenant.advance(restorableFor);
  assert.equal(await purgeExpired(tenant.store, tenant.world.now()), 1);
  for (const pair of [0, 1, 2, 3]) {
    assert.equal(await tenant.run(({ tx }) => tx.rings.earlierPublicKey(ring.id, pair)), undefined);
  }
});

test('a change of the public key is noted by its name alone', async () => {
  const tenant = await testTenant();
  const { ring } = await tenant.call(createKeyring, { name: 'a' });
  const publicKey = toBase64(hybridKeyToSpki(xWingPublicKey(new Uint8Array(32))));
  const noted: unknown[] = [];
  const put = (key: string) =>
    tenant.run((ctx) =>
      putConfig({ ...ctx, note: (deed) => noted.push(deed) }, { ringname: 'a', config: { publicKey: key } }),
    );
  await put(publicKey);
  await put(publicKey);
  const object = { type: 'keyring', id: ring.id, name: 'a' };
  assert.deepEqual(noted, [
    { object, changed: ['kem', 'publicKey'] },
    { object, changed: [] },
  ]);
});

test('a change that names the public key it replaces is refused once the ring has another', async () => {
  const tenant = await testTenant();
  const { ring } = await tenant.call(createKeyring, { name: 'a' });
  const random = seededRandom(9);
  const [one = '', two = '', three = ''] = [1, 2, 3].map(() => toBase64(hybridKeyToSpki(xWingPublicKey(random(32)))));
  const put = (publicKey: string, replaces: string, props = {}) =>
    tenant.call(putConfig, { ringname: 'a', config: { publicKey, replaces, props } });
  const now = async () => (await tenant.call(getKeyring, { ring: { name: 'a' } })).ring;
  // Two at once, both based on the first one.
  const both = await Promise.allSettled([put(one, ring.publicKey), put(two, ring.publicKey, { late: true })]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  const error = await refusal('conflict', put(two, ring.publicKey, { late: true }));
  assert.deepEqual(error.fields, {
    'config.replaces': 'the keyring has another public key by now: read it again',
  });
  assert.deepEqual([(await now()).publicKey, (await now()).props], [one, {}]);
  // A request without an answer may be repeated, and all forms of a key count as the same.
  await put(one, ring.publicKey);
  await put(two, toBase64(parseHybridKey(one) ?? assert.fail()));
  assert.equal((await now()).publicKey, two);
  await refusal('conflict', put(three, one));
  for (const [config, field] of [
    [{ replaces: two }, 'config.replaces'],
    [{ publicKey: three, replaces: 'x' }, 'config.replaces'],
    [{ publicKey: three, replaces: '' }, 'config.replaces'],
    [{ publicKey: 'x', replaces: two }, 'config.publicKey'],
  ] as const) {
    const wrong = await refusal('invalid', tenant.call(putConfig, { ringname: 'a', config }));
    assert.deepEqual(Object.keys(wrong.fields ?? {}), [field]);
  }
  assert.equal((await now()).publicKey, two);
});

test('the asym service answers its own shapes', async () => {
  const tenant = await testTenant();
  const { ring, key, privateKey } = await tenant.call(createAsymKeyring, {
    name: 'A',
    props: { x: 1 },
    keyProps: { k: 1 },
  });
  assert.deepEqual(Object.keys(ring).sort(), [
    'activeAlgorithm',
    'activeKey',
    'createdAt',
    'custody',
    'displayName',
    'id',
    'kem',
    'name',
    'publicKey',
    'updatedAt',
  ]);
  assert.deepEqual(Object.keys(key).sort(), ['id', 'kem', 'keyData', 'props', 'type']);
  assert.equal(key.type, 'AES256');
  assert.deepEqual(Object.keys(key.keyData), ['key']);
  const opener = parsePrivateKey(privateKey);
  assert.ok(opener && (await unwrapRingKey('asym', opener, key.id, key.keyData.key)));
  const rotated = await tenant.call(rotateAsymKeyring, { ringname: 'a' });
  assert.deepEqual(rotated.key.props, { k: 1 });
  const { publicKey } = ring;
  assert.deepEqual(await tenant.call(getAsymKey, { ring: { id: ring.id }, keyId: key.id }), { ...key, publicKey });
  assert.deepEqual(await tenant.call(getAsymKey, { ring: { name: 'A' }, keyId: rotated.key.id }), {
    ...rotated.key,
    publicKey,
  });
  await refusal('not-found', tenant.call(rotateAsymKeyring, { ringname: 'b' }));
});
