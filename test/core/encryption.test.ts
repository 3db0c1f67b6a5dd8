// Encrypt, hash, header and decrypt: round trips, rotation on the way, and refusals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteAsset, getAsset } from '../../src/core/assets.ts';
import { decrypt, encrypt, hashInfo, headerInfo } from '../../src/core/encryption.ts';
import {
  createAsymKeyring,
  createKeyring,
  deleteKeyring,
  getKeyring,
  listKeys,
  putConfig,
  restoreKeyring,
  rotateKeyring,
} from '../../src/core/keyrings.ts';
import { fromBase64Url, toBase64Url } from '../../src/crypto/bytes.ts';
import { inspectHeader } from '../../src/crypto/header.ts';
import { callerWith, refusal, type TestTenant, testTenant } from '../support/context.ts';

async function withRing(options: Parameters<typeof testTenant>[0] = {}) {
  const tenant = await testTenant(options);
  const made = await tenant.call(createKeyring, { name: 'Payroll', props: { r: 1 }, keyProps: { k: 1 } });
  return { tenant, ...made };
}

const keysOf = async (tenant: TestTenant) =>
  (await tenant.list(listKeys, { ring: { name: 'payroll' }, page: { limit: 100 } })).items.length;

/** The base64url text with one bit of its bytes changed. */
function flip(text: string, byte: number): string {
  const bytes = fromBase64Url(text);
  assert.ok(bytes);
  bytes[byte] = (bytes[byte] ?? 0) ^ 1;
  return toBase64Url(bytes);
}

test('encrypt hands out the active key, decrypt finds it by hash, header or both', async () => {
  const { tenant, ring, key } = await withRing();
  const answer = await tenant.call(encrypt, { ringname: 'PAYROLL' });
  assert.deepEqual(Object.keys(answer).sort(), ['hash', 'header', 'key', 'ringId']);
  assert.deepEqual(answer.key, key);
  assert.equal(answer.ringId, ring.id);
  const { hash, header } = answer;
  assert.ok(hash.length <= 128 && /^[\w-]+$/.test(hash));
  assert.ok(header.length <= 1024 && /^[\w-]+$/.test(header));
  const expected = { ringId: ring.id, ringname: 'payroll', key };
  for (const input of [{ hash }, { header }, { hash, header }])
    assert.deepEqual(await tenant.call(decrypt, input), expected);
  assert.deepEqual(await tenant.call(hashInfo, { hash }), { ringId: ring.id, keyId: key.id });
  assert.deepEqual(await tenant.call(headerInfo, { header }), { valid: true, version: 1, hasSignedAsset: false, hash });
});

test('of a key that the caller has already the bytes are left out, and of no other', async () => {
  const { tenant, key } = await withRing();
  const { keyData: _, ...bare } = key;
  const knownKeys = ['nobody', key.id];
  const { header, ...known } = await tenant.call(encrypt, { ringname: 'payroll', knownKeys });
  assert.deepEqual(known.key, bare);
  assert.deepEqual((await tenant.call(decrypt, { header, knownKeys })).key, bare);
  assert.deepEqual((await tenant.call(decrypt, { header, knownKeys: [] })).key, key);
  assert.deepEqual((await tenant.call(decrypt, { header, knownKeys: [key.id.toUpperCase()] })).key, key);
  // A key rotated meanwhile is another key.
  const { key: next } = await tenant.call(rotateKeyring, { ringname: 'payroll' });
  assert.deepEqual((await tenant.call(encrypt, { ringname: 'payroll', knownKeys })).key, next);
  // A refusal because of the asset has the same shape as a successful answer.
  const signed = await tenant.call(encrypt, { ringname: 'payroll', asset: {} });
  await tenant.call(deleteAsset, { id: signed.asset?.id ?? '' });
  const refused = await refusal('asset-invalid', tenant.call(decrypt, { header: signed.header, knownKeys: [next.id] }));
  assert.deepEqual(Object.keys(Object(refused.body).key).sort(), ['id', 'kem', 'props', 'type']);
});

test('who encrypts without the private key gets a share and the public key, and whoever decrypts the share again', async () => {
  const { tenant, ring, key } = await withRing();
  const { keyData: _, ...bare } = key;
  const answer = await tenant.call(encrypt, { ringname: 'payroll', recipient: true });
  assert.deepEqual(Object.keys(answer).sort(), ['hash', 'header', 'key', 'publicKey', 'ringId', 'share']);
  const { hash, header, share } = answer;
  assert.deepEqual([answer.key, answer.ringId, answer.publicKey], [bare, ring.id, ring.publicKey]);
  assert.equal(Buffer.from(share ?? '', 'base64').length, 32);
  assert.deepEqual(await tenant.call(headerInfo, { header }), { valid: true, version: 1, hasSignedAsset: false, hash });
  for (const input of [{ header }, { hash, header }]) {
    const opened = await tenant.call(decrypt, input);
    assert.deepEqual(opened, { ringId: ring.id, ringname: 'payroll', key, share });
  }
  // A hash alone returns no share, and neither does an ordinary header.
  assert.ok(!('share' in (await tenant.call(decrypt, { hash }))));
  const ordinary = await tenant.call(encrypt, { ringname: 'payroll', recipient: false });
  assert.deepEqual(Object.keys(ordinary).sort(), ['hash', 'header', 'key', 'ringId']);
  assert.ok(!('share' in (await tenant.call(decrypt, { header: ordinary.header }))));
  assert.notEqual((await tenant.call(encrypt, { ringname: 'payroll', recipient: true })).share, share);
  // Changed flags turn neither kind of header into the other.
  for (const text of [header, ordinary.header]) {
    const bytes = fromBase64Url(text) ?? assert.fail('no bytes');
    for (let flags = 0; flags < 8; flags++) {
      if (flags === bytes[1]) continue;
      await refusal('invalid', tenant.call(decrypt, { header: toBase64Url(bytes.with(1, flags)) }));
    }
  }
});

test('an encrypt without the private key counts, signs assets and rotates as any other does', async () => {
  const { tenant, key } = await withRing();
  await tenant.call(putConfig, { ringname: 'payroll', config: { algos: { aes256: { maxEncryptCount: 1 } } } });
  const first = await tenant.call(encrypt, { ringname: 'payroll', recipient: true, asset: { data: { a: 1 } } });
  assert.equal(first.key.id, key.id);
  const second = await tenant.call(encrypt, { ringname: 'payroll', recipient: true });
  assert.notEqual(second.key.id, key.id);
  const opened = await tenant.call(decrypt, { header: first.header });
  assert.deepEqual([opened.share, opened.asset?.valid, opened.asset?.data], [first.share, true, { a: 1 }]);
  await tenant.call(deleteAsset, { id: first.asset?.id ?? '' });
  const refused = await refusal('asset-invalid', tenant.call(decrypt, { header: first.header }));
  assert.equal(Object(refused.body).share, first.share);
});

test('a header says whether its ring lets files open offline, from when it is configured', async () => {
  const { tenant } = await withRing();
  const offline = async () =>
    inspectHeader((await tenant.call(encrypt, { ringname: 'payroll', recipient: true })).header)?.isOffline;
  const ringShown = async () => (await tenant.call(getKeyring, { ring: { name: 'payroll' } })).ring.offlineDecrypt;
  assert.deepEqual([await offline(), await ringShown()], [false, undefined]);
  const put = async (config: object) => (await tenant.call(putConfig, { ringname: 'payroll', config })).config;
  assert.equal((await put({ offlineDecrypt: true })).offlineDecrypt, true);
  assert.equal((await put({ props: {} })).offlineDecrypt, true);
  assert.deepEqual([await offline(), await ringShown()], [true, true]);
  const ordinary = await tenant.call(encrypt, { ringname: 'payroll' });
  assert.deepEqual(inspectHeader(ordinary.header)?.isOffline, false);
  await put({ offlineDecrypt: false });
  assert.deepEqual([await offline(), await ringShown()], [false, undefined]);
});

test('every encrypt has a hash of its own', async () => {
  const { tenant } = await withRing();
  const hashes = new Set<string>();
  for (let i = 0; i < 50; i++) hashes.add((await tenant.call(encrypt, { ringname: 'payroll' })).hash);
  assert.equal(hashes.size, 50);
});

test('encrypt and decrypt know no unknown ring', async () => {
  const { tenant } = await withRing();
  await tenant.call(createAsymKeyring, { name: 'asym' });
  for (const ringname of ['nobody', 'asym', '', '*', "' OR 1=1"]) {
    await refusal('not-found', tenant.call(encrypt, { ringname }));
  }
});

test('a key serves maxEncryptCount encrypts, the next one rotates', async () => {
  const { tenant, key } = await withRing();
  await tenant.call(putConfig, {
    ringname: 'payroll',
    config: { algos: { aes256: { maxEncryptCount: 2 } }, key: { props: { k: 2 } } },
  });
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push((await tenant.call(encrypt, { ringname: 'payroll' })).key.id);
  assert.equal(ids[0], key.id);
  assert.deepEqual(
    ids.map((id) => [...new Set(ids)].indexOf(id)),
    [0, 0, 1, 1, 2],
  );
  const last = await tenant.call(encrypt, { ringname: 'payroll' });
  assert.deepEqual(last.key.props, { k: 2 });
  assert.equal((await tenant.call(decrypt, { hash: last.hash })).key.id, last.key.id);
  await tenant.call(putConfig, { ringname: 'payroll', config: { algos: { aes256: { maxEncryptCount: 1 } } } });
  assert.notEqual((await tenant.call(encrypt, { ringname: 'payroll' })).key.id, last.key.id);
});

test('a key serves until it is rotateAfter seconds old, the next encrypt rotates', async () => {
  const { tenant, key: first } = await withRing();
  const configure = (config: object) => tenant.call(putConfig, { ringname: 'payroll', config });
  const keyOf = async () => (await tenant.call(encrypt, { ringname: 'payroll' })).key.id;
  const year = 365 * 86_400_000;
  tenant.advance(year);
  assert.equal(await keyOf(), first.id, 'no age is too old unless said so');
  await configure({ rotateAfter: 3600 });
  assert.equal(await keysOf(tenant), 1, 'nothing is rotated while nobody encrypts');
  const second = await keyOf();
  assert.notEqual(second, first.id);
  tenant.advance(3_599_999);
  assert.equal(await keyOf(), second);
  // Other settings don't affect it.
  assert.equal((await configure({ props: { a: 1 } })).config.rotateAfter, 3600);
  tenant.advance(1);
  // A hash of the older key is still resolved, and a decrypt rotates nothing.
  const third = await tenant.call(encrypt, { ringname: 'payroll' });
  assert.ok(third.key.id !== second && third.key.id !== first.id);
  tenant.advance(year);
  assert.equal((await tenant.call(decrypt, { hash: third.hash })).key.id, third.key.id);
  assert.equal(await keysOf(tenant), 3);
  await configure({ rotateAfter: null });
  assert.equal(await keyOf(), third.key.id);
  // A manual rotation restarts the key's age.
  await configure({ rotateAfter: 7200 });
  const { key } = await tenant.call(rotateKeyring, { ringname: 'payroll' });
  tenant.advance(7_199_999);
  assert.equal(await keyOf(), key.id);
});

test('a rotation by age that there is no room for fails the encrypt; one that fails on its asset does not rotate', async () => {
  const { tenant } = await withRing({ limits: { keysPerRing: 2 } });
  await tenant.call(putConfig, { ringname: 'payroll', config: { rotateAfter: 3600 } });
  tenant.advance(3_600_000);
  await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { parents: ['nobody'] } }));
  assert.equal(await keysOf(tenant), 1);
  await tenant.call(encrypt, { ringname: 'payroll' });
  tenant.advance(3_600_000);
  await refusal('quota', tenant.call(encrypt, { ringname: 'payroll' }));
  assert.equal(await keysOf(tenant), 2);
});

test('a rotation that there is no room for fails the encrypt and leaves nothing', async () => {
  const { tenant } = await withRing({ limits: { keysPerRing: 1 } });
  await tenant.call(putConfig, { ringname: 'payroll', config: { algos: { aes256: { maxEncryptCount: 1 } } } });
  await tenant.call(encrypt, { ringname: 'payroll' });
  await refusal('quota', tenant.call(encrypt, { ringname: 'payroll', asset: {} }));
  assert.equal(await keysOf(tenant), 1);
  assert.equal(await tenant.run(({ tx }) => tx.assets.count()), 0);
});

test('an encrypt that fails on its asset neither counts nor rotates', async () => {
  const { tenant } = await withRing();
  await tenant.call(putConfig, { ringname: 'payroll', config: { algos: { aes256: { maxEncryptCount: 1 } } } });
  await tenant.call(encrypt, { ringname: 'payroll' });
  await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { parents: ['nobody'] } }));
  assert.equal(await keysOf(tenant), 1);
});

test('what is no hash or header is refused, each where its rule says', async () => {
  const { tenant } = await withRing();
  const { hash, header } = await tenant.call(encrypt, { ringname: 'payroll' });
  const other = await tenant.call(encrypt, { ringname: 'payroll' });
  for (const wrong of [
    '',
    'x',
    hash.slice(1),
    `${hash}A`,
    hash.toUpperCase(),
    header,
    flip(hash, 0),
    flip(hash, 2),
    flip(hash, 74),
  ]) {
    await refusal('invalid', tenant.call(hashInfo, { hash: wrong }));
    await refusal('invalid', tenant.call(decrypt, { hash: wrong }));
  }
  for (const wrong of ['', 'x', header.slice(4), `${header}AAAA`, hash, flip(header, 0), flip(header, 1)]) {
    await refusal('not-found', tenant.call(headerInfo, { header: wrong }));
    await refusal('invalid', tenant.call(decrypt, { header: wrong }));
  }
  await refusal('invalid', tenant.call(decrypt, {}));
  await refusal('invalid', tenant.call(decrypt, { hash: other.hash, header }));
  await refusal('invalid', tenant.call(decrypt, { hash: 'x', header }));
});

test('a hash with any byte changed is no hash, a header with any byte changed is not valid', async () => {
  const { tenant } = await withRing();
  const { hash, header } = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { a: 1 } } });
  for (let i = 0; i < 75; i++) await refusal('invalid', tenant.call(hashInfo, { hash: flip(hash, i) }));
  const length = fromBase64Url(header)?.length ?? 0;
  for (let i = 0; i < length; i++) {
    const altered = flip(header, i);
    const info = await tenant.call(headerInfo, { header: altered }).catch((error) => error.code);
    assert.equal(i < 77 ? info : info.valid, i < 77 ? 'not-found' : false, `byte ${i}`);
    const error = await tenant.call(decrypt, { header: altered }).catch((error) => error);
    assert.equal(error.code, i < 89 ? 'invalid' : 'asset-invalid', `byte ${i}`);
  }
});

test("another tenant's hash and header are not ours", async () => {
  const { tenant } = await withRing();
  const { tenant: stranger } = await withRing({ seed: 2 });
  const { hash, header } = await stranger.call(encrypt, { ringname: 'payroll' });
  await refusal('invalid', tenant.call(hashInfo, { hash }));
  await refusal('not-found', tenant.call(headerInfo, { header }));
  await refusal('invalid', tenant.call(decrypt, { header }));
});

test('a deleted ring takes hash and header along, a restored one brings them back', async () => {
  const { tenant, ring } = await withRing();
  const { hash, header } = await tenant.call(encrypt, { ringname: 'payroll' });
  await tenant.call(deleteKeyring, { name: 'payroll' });
  await refusal('not-found', tenant.call(encrypt, { ringname: 'payroll' }));
  await refusal('not-found', tenant.call(hashInfo, { hash }));
  await refusal('not-found', tenant.call(headerInfo, { header }));
  await refusal('not-found', tenant.call(decrypt, { hash }));
  await refusal('not-found', tenant.call(decrypt, { header }));
  await tenant.call(restoreKeyring, { id: ring.id });
  assert.equal((await tenant.call(decrypt, { header })).ringId, ring.id);
});

test('an asset is made, signed into the header, and verified', async () => {
  const { tenant, ring, key } = await withRing();
  const data = { file: 'a.txt', deep: { list: [1, { b: null }] } };
  const parent = (await tenant.call(encrypt, { ringname: 'payroll', asset: {} })).asset;
  assert.deepEqual([parent?.data, parent?.parents], [{}, []]);
  const parents = [parent?.id ?? ''];
  const { asset, hash, header } = await tenant.call(encrypt, { ringname: 'payroll', asset: { data, parents } });
  assert.deepEqual(Object.keys(asset ?? {}).sort(), ['createdAt', 'data', 'id', 'parents']);
  assert.deepEqual([asset?.data, asset?.parents, asset?.createdAt], [data, parents, '2026-01-02T03:04:05.678Z']);
  assert.deepEqual(await tenant.call(getAsset, { id: asset?.id ?? '' }), asset);
  assert.ok(header.length <= 1024);
  assert.deepEqual(await tenant.call(headerInfo, { header }), { valid: true, version: 1, hasSignedAsset: true, hash });
  const answer = await tenant.call(decrypt, { header, hash });
  assert.deepEqual(
    { ...answer, asset: { ...answer.asset, message: '' } },
    {
      ringId: ring.id,
      ringname: 'payroll',
      key,
      asset: { valid: true, id: asset?.id, data, message: '' },
    },
  );
  assert.ok(answer.asset?.message);
  assert.equal('asset' in (await tenant.call(decrypt, { hash })), false);
});

test('older headers verify against the version that they signed', async () => {
  const { tenant } = await withRing();
  const one = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { v: 1 } } });
  const id = one.asset?.id ?? '';
  const parent = (await tenant.call(encrypt, { ringname: 'payroll', asset: {} })).asset?.id ?? '';
  tenant.advance(5000);
  const two = await tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: id, data: { v: 2 } } });
  const three = await tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: id, parents: [parent, parent] } });
  const four = await tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: id } });
  assert.deepEqual(two.asset, { ...one.asset, data: { v: 2 } });
  assert.deepEqual(three.asset, { ...one.asset, data: { v: 2 }, parents: [parent] });
  assert.deepEqual(four.asset, three.asset);
  for (const [{ header }, data] of [
    [one, { v: 1 }],
    [two, { v: 2 }],
    [three, { v: 2 }],
    [four, { v: 2 }],
  ] as const) {
    const { asset } = await tenant.call(decrypt, { header });
    assert.deepEqual([asset?.valid, asset?.id, asset?.data], [true, id, data]);
  }
});

test('a deleted asset answers 422 with the whole body', async () => {
  const { tenant, ring, key } = await withRing();
  const { asset, header, hash } = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { a: 1 } } });
  const id = asset?.id ?? '';
  assert.deepEqual(await tenant.call(deleteAsset, { id }), asset);
  const error = await refusal('asset-invalid', tenant.call(decrypt, { header }));
  assert.deepEqual(error.body, {
    ringId: ring.id,
    ringname: 'payroll',
    key,
    asset: { valid: false, id, message: error.message, data: {} },
  });
  assert.equal((await tenant.call(headerInfo, { header })).valid, true);
  assert.equal((await tenant.call(decrypt, { hash })).ringId, ring.id);
});

test('an asset part from another header does not pass', async () => {
  const { tenant } = await withRing();
  const one = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { secret: 1 } } });
  const two = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { public: 1 } } });
  const [a, b] = [fromBase64Url(one.header), fromBase64Url(two.header)];
  assert.ok(a && b);
  const mixed = toBase64Url(Uint8Array.of(...b.subarray(0, 89), ...a.subarray(89)));
  const error = await refusal('asset-invalid', tenant.call(decrypt, { header: mixed }));
  assert.doesNotMatch(JSON.stringify(error.body), /secret/);
  // A header without its asset part is invalid.
  await refusal('invalid', tenant.call(decrypt, { header: toBase64Url(a.subarray(0, 89)) }));
});

test('assets belong to their ring, parents must be there, and no asset is its own ancestor', async () => {
  const { tenant } = await withRing();
  await tenant.call(createKeyring, { name: 'other' });
  const make = async (input: object, ringname = 'payroll') =>
    (await tenant.call(encrypt, { ringname, asset: input })).asset?.id ?? '';
  const a = await make({});
  const b = await make({ parents: [a] });
  const c = await make({ parents: [b] }, 'other');
  const gone = await make({});
  await tenant.call(deleteAsset, { id: gone });
  for (const assetId of [gone, 'asset_x', '']) {
    await refusal('not-found', tenant.call(encrypt, { ringname: 'payroll', asset: { assetId } }));
  }
  await refusal('not-found', tenant.call(encrypt, { ringname: 'other', asset: { assetId: a } }));
  for (const parents of [[gone], ['asset_x'], [''], [a, gone]]) {
    const error = await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { parents } }));
    assert.ok(error.fields?.['asset.parents']);
  }
  for (const parents of [[a], [b], [c]]) {
    await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: a, parents } }));
  }
  assert.equal(await make({ assetId: b, parents: [] }), b);
  assert.equal(await make({ assetId: a, parents: [b] }), a);
  await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: b, parents: [c, a] } }));
});

test('data that JSON can say but nobody can sign is refused', async () => {
  const { tenant } = await withRing();
  for (const data of [JSON.parse('{"a":"\\ud800"}'), JSON.parse('{"\\udc00":1}'), JSON.parse('{"a":1e999}')]) {
    await refusal('invalid', tenant.call(encrypt, { ringname: 'payroll', asset: { data } }));
  }
  const data = JSON.parse('{"__proto__":{"x":1},"constructor":"c","nul":"a\\u0000b","n":-0.0,"big":1e21,"ä":"😀"}');
  const { header } = await tenant.call(encrypt, { ringname: 'payroll', asset: { data } });
  const { asset } = await tenant.call(decrypt, { header });
  assert.equal(JSON.stringify(asset?.data), JSON.stringify(data));
});

test('the limit of assets counts those that there are', async () => {
  const { tenant } = await withRing({ limits: { assets: 1 } });
  const { asset } = await tenant.call(encrypt, { ringname: 'payroll', asset: {} });
  await refusal('quota', tenant.call(encrypt, { ringname: 'payroll', asset: {} }));
  await tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: asset?.id ?? '' } });
  await tenant.call(encrypt, { ringname: 'payroll' });
  await tenant.call(deleteAsset, { id: asset?.id ?? '' });
  await tenant.call(encrypt, { ringname: 'payroll', asset: {} });
});

test('hashes, headers and signatures of an earlier key epoch are still good', async () => {
  const { tenant } = await withRing({ epochs: [1] });
  const { header, hash } = await tenant.call(encrypt, { ringname: 'payroll', asset: { data: { a: 1 } } });
  const later = (await testTenant({ epochs: [1, 2] })).run((ctx) => ctx.tenant);
  const moved = await later;
  const answer = await tenant.run((ctx) => decrypt({ ...ctx, tenant: moved }, { header, hash }));
  assert.equal(answer.asset?.valid, true);
  const fresh = await tenant.run((ctx) => encrypt({ ...ctx, tenant: moved }, { ringname: 'payroll', asset: {} }));
  await refusal('invalid', tenant.call(decrypt, { hash: fresh.hash }));
  assert.equal((await tenant.run((ctx) => decrypt({ ...ctx, tenant: moved }, fresh))).asset?.valid, true);
});

test('an asset keeps who made it', async () => {
  const { tenant } = await withRing();
  const maker = { ...callerWith('*'), id: 'apik_maker', accountId: 'acct_maker' };
  const { asset } = await tenant.call(encrypt, { ringname: 'payroll', asset: {} }, maker);
  await tenant.call(encrypt, { ringname: 'payroll', asset: { assetId: asset?.id ?? '' } });
  const row = await tenant.run(({ tx }) => tx.assets.byId(asset?.id ?? ''));
  assert.deepEqual([row?.apikeyId, row?.accountId, row?.version], ['apik_maker', 'acct_maker', 2]);
});
