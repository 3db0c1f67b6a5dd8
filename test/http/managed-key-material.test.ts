// Managed keys' material over the native interface: data keys of any length and pairs of them, messages that go from
// key to key, imported keys that are erased and come back, and changes of some tags.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, publicEncrypt, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { pairTypes } from '../../src/model/key-types.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { base64, make, ok, refused } from './managed-key-desk.ts';

test('a data key has as many bytes as asked for, or is the private key of a pair', async () => {
  const a = await testAppliance();
  const { name } = await make(a);
  const path = `/managed-keys/${name}/datakey`;
  const opened = async (ciphertext: string) =>
    (await ok(a.call('POST', `/managed-keys/${name}/decrypt`, { items: [{ ciphertext }] }))).items[0].plaintext;
  for (const bytes of [1, 24, 1024]) {
    const { plaintext, ciphertext } = await ok(a.call('POST', path, { bytes }));
    assert.equal(Buffer.from(plaintext, 'base64').length, bytes);
    assert.equal(await opened(ciphertext), plaintext);
  }
  for (const pair of pairTypes) {
    const { plaintext, publicKey, ciphertext } = await ok(a.call('POST', path, { pair }));
    const privateKey = createPrivateKey({ key: Buffer.from(plaintext, 'base64'), format: 'der', type: 'pkcs8' });
    const hash = pair === 'ed25519' ? null : 'sha256';
    const signature = sign(hash, Buffer.from('m'), privateKey);
    assert.equal(verify(hash, Buffer.from('m'), createPublicKey(publicKey), signature), true, pair);
    assert.equal(await opened(ciphertext), plaintext);
  }
  const wrapped = await ok(a.call('POST', `${path}-wrapped`, { pair: 'ecdsa-p256' }));
  assert.deepEqual(Object.keys(wrapped).sort(), ['ciphertext', 'keyVersion', 'publicKey']);
  await refused(a.call('POST', path, { bits: 256, bytes: 32 }), 400, /expected one of bits, bytes and pair/);
  await refused(a.call('POST', path, { bytes: 1025 }), 400, /^bytes:/);
  await refused(a.call('POST', path, { pair: 'ml-dsa-44' }), 400, /^pair:/);
});

test('a message goes from key to key without being shown, for who may decrypt and encrypt', async () => {
  const a = await testAppliance();
  const [from, to] = [await make(a), await make(a, { type: 'chacha20-poly1305' })];
  const rsa = await make(a, { type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  const plaintext = base64('hello');
  const sealed = await ok(
    a.call('POST', `/managed-keys/${from.name}/encrypt`, { items: [{ plaintext, associatedData: 'YQ==' }] }),
  );
  const [{ ciphertext }] = sealed.items;
  const item = { ciphertext, associatedData: 'YQ==', toAssociatedData: 'Yg==' };
  const path = `/managed-keys/${from.name}/decrypt`;
  const moved = await ok(a.call('POST', path, { items: [item, { ciphertext }], toKey: to.id }));
  assert.match(moved.items[1].error, /authentication failed/);
  assert.deepEqual(Object.keys(moved.items[0]).sort(), ['ciphertext', 'keyVersion']);
  const items = [{ ciphertext: moved.items[0].ciphertext, associatedData: 'Yg==' }];
  assert.equal((await ok(a.call('POST', `/managed-keys/${to.name}/decrypt`, { items }))).items[0].plaintext, plaintext);
  const [record] = (await a.activity()).filter(({ props }) => Array.isArray(props.objects));
  const props: AnyJson = record?.props;
  assert.deepEqual([record?.action, props.objects[0].id], ['key.decrypt', to.id]);
  const toRsa = await ok(
    a.call('POST', path, { items: [{ ciphertext, associatedData: 'YQ==' }], toKey: rsa.name, toHash: 'sha1' }),
  );
  const back = { items: [{ ciphertext: toRsa.items[0].ciphertext }], hash: 'sha1' };
  assert.equal((await ok(a.call('POST', `/managed-keys/${rsa.name}/decrypt`, back))).items[0].plaintext, plaintext);
  for (const [flags, status] of [
    [[`key.${from.name}.decrypt`], 403],
    [[`key.${to.name}.encrypt`], 403],
    [[`key.${from.name}.decrypt`, `key.${to.name}.encrypt`], 200],
  ] as const) {
    const { key } = await a.keyWith(...flags);
    assert.equal((await a.call('POST', path, { items: [item], toKey: to.name }, { key })).status, status);
  }
  const { key } = await a.keyWith(`key.${from.name}.decrypt`);
  await refused(a.call('POST', path, { items: [item], toKey: 'nowhere' }, { key }), 403, /key\.nowhere\.encrypt/);
  await refused(a.call('POST', path, { items: [item], toKey: 'nowhere' }), 404, /no such managed key/);
  await refused(a.call('POST', path, { items: [item], toHash: 'sha1' }), 400, /^toHash:/);
});

test('what does not say its version is compared with the newest ones', async () => {
  const a = await testAppliance();
  const input = base64('hello');
  for (const [type, operation, field] of [
    ['ed25519', 'sign', 'signature'],
    ['hmac-sha256', 'mac', 'mac'],
  ] as const) {
    const { name } = await make(a, { type });
    const { [field]: made } = await ok(a.call('POST', `/managed-keys/${name}/${operation}`, { input }));
    const bare = made.replace('vault:v1:', '');
    const check = (body: object) => ok(a.call('POST', `/managed-keys/${name}/verify`, { anyVersion: true, ...body }));
    for (let version = 2; version <= 6; version++) {
      assert.equal((await check({ input, [field]: bare })).valid, version - 1 <= 5);
      await ok(a.call('POST', `/managed-keys/${name}/rotate`));
    }
    assert.equal((await check({ input, [field]: bare })).valid, false);
    assert.equal((await check({ input: base64('no'), [field]: bare })).valid, false);
  }
});

async function imported(a: Appliance, name: string, bytes: Buffer, more: object = {}) {
  const { publicKey: key } = (await a.call('GET', '/managed-keys/wrapping-key?type=rsa-2048')).body;
  const wrapped = publicEncrypt({ key, oaepHash: 'sha256' }, bytes).toString('base64');
  return a.call('POST', `/managed-keys/${name}/import`, { wrapped, ...more });
}

test('an RSA ciphertext of other software opens with whichever of the newest versions it is for', async () => {
  const a = await testAppliance();
  const { name, versions } = await make(a, { type: 'rsa-2048', uses: ['encrypt', 'decrypt'] });
  await ok(a.call('POST', `/managed-keys/${name}/rotate`));
  const { key } = await ok(a.call('GET', `/managed-keys/${name}`));
  const publicKeys = [versions[0].publicKey, key.versions[0].publicKey];
  const items = publicKeys.map((publicKey, n) => ({
    ciphertext: publicEncrypt({ key: publicKey, oaepHash: 'sha256' }, Buffer.from(`${n}`)).toString('base64'),
  }));
  const path = `/managed-keys/${name}/decrypt`;
  const opened = await ok(a.call('POST', path, { items: [...items, { ciphertext: 'aGk=' }], anyVersion: true }));
  assert.deepEqual(
    opened.items.map(({ plaintext, error }: AnyJson) => plaintext ?? error),
    [base64('0'), base64('1'), 'failed to RSA decrypt the ciphertext: decryption error'],
  );
  const { name: other } = await make(a);
  const refusal = await ok(a.call('POST', `/managed-keys/${other}/decrypt`, { items, anyVersion: true }));
  assert.match(refusal.items[0].error, /say their version/);
});

test('an imported key is erased to its last byte, and opens again what it made once it is back', async () => {
  const a = await testAppliance();
  const bytes = Buffer.alloc(32, 7);
  await ok(imported(a, 'brought', bytes));
  const items = [{ plaintext: 'aGk=' }];
  const { ciphertext } = (await ok(a.call('POST', '/managed-keys/brought/encrypt', { items }))).items[0];
  const { key } = await ok(a.call('DELETE', '/managed-keys/brought/material'));
  assert.deepEqual([key.state, key.versions[0].state, key.primaryVersion], ['active', 'destroyed', null]);
  const store = a.tenants[0]?.handle.store ?? assert.fail();
  assert.equal(store.read(({ keyVersions }) => keyVersions.get(key.id, 1))?.sealed, '');
  const decrypts = () => a.call('POST', '/managed-keys/brought/decrypt', { items: [{ ciphertext }] });
  assert.match((await ok(decrypts())).items[0].error, /is destroyed/);
  await ok(a.call('DELETE', '/managed-keys/brought/material'));
  await refused(imported(a, 'brought', Buffer.alloc(32, 8)), 400, /the same key that was erased/);
  assert.equal((await ok(imported(a, 'brought', bytes))).key.latestVersion, 1);
  assert.equal((await ok(decrypts())).items[0].plaintext, 'aGk=');
  await ok(imported(a, 'brought', Buffer.alloc(32, 9), { isNewVersion: true }));
  await refused(a.call('DELETE', '/managed-keys/brought/material'), 400, /several versions/);
  const { name } = await make(a);
  await refused(a.call('DELETE', `/managed-keys/${name}/material`), 400, /was not imported/);
});

test('wrapping keys have the length asked for, and those for one key are for who may import it', async () => {
  const a = await testAppliance();
  for (const type of ['rsa-2048', 'rsa-3072', 'rsa-4096'] as const) {
    const { publicKey, algorithm } = await ok(a.call('GET', `/managed-keys/wrapping-key?type=${type}`));
    assert.equal(algorithm, type);
    assert.equal(createPublicKey(publicKey).asymmetricKeyDetails?.modulusLength, Number(type.slice(4)));
  }
  const { name } = await make(a);
  const path = `/managed-keys/wrapping-key?key=${name}`;
  await ok(a.call('GET', path));
  const { key } = await a.keyWith('key.other.import');
  await refused(a.call('GET', path, undefined, { key }), 403, new RegExp(`key\\.${name}\\.import`));
  await refused(a.call('GET', '/managed-keys/wrapping-key?key=none'), 404, /no such managed key/);
});

test('some tags and properties change, and the rest is kept', async () => {
  const a = await testAppliance();
  const { name } = await make(a, { tags: { a: '1', b: '2' }, props: { ticket: 7 } });
  const change = (changes: object) => a.call('PUT', `/managed-keys/${name}/config`, { changes });
  const { key } = await ok(change({ tags: { a: null, c: '3', none: null }, props: { description: 'd' } }));
  assert.deepEqual(
    [key.tags, key.props],
    [
      { b: '2', c: '3' },
      { ticket: 7, description: 'd' },
    ],
  );
  await refused(change({ tags: { a: 7 } }), 400, /a text for every tag/);
  const many = Object.fromEntries(Array.from({ length: 49 }, (_, n) => [`t${n}`, '']));
  await refused(change({ tags: many }), 400, /at most 50 tags/);
});

test('a restored key is suspended if that is asked for', async () => {
  const a = await testAppliance();
  const { id, name } = await make(a, { deletionAllowed: true });
  for (const [query, state] of [
    ['?suspended=true', 'suspended'],
    ['', 'suspended'],
  ] as const) {
    await ok(a.call('DELETE', `/managed-keys/${name}`, { used: true }));
    assert.equal((await ok(a.call('POST', `/managed-keys/${id}/restore${query}`))).key.state, state);
  }
  await ok(a.call('POST', `/managed-keys/${name}/state`, { state: 'active' }));
  await ok(a.call('DELETE', `/managed-keys/${name}`, { used: true }));
  assert.equal((await ok(a.call('POST', `/managed-keys/${id}/restore`))).key.state, 'active');
});
