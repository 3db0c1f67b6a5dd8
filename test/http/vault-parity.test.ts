// Operations of the transit engine besides messages: MACs, signatures of every kind, random bytes and hashes, keys on
// their way in and out, soft deletion, aliases. A comparison with OpenBao's own answers is in test/interop.
import assert from 'node:assert/strict';
import {
  constants,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  sign,
  verify,
} from 'node:crypto';
import { test } from 'node:test';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { isRefused, ring, v1 } from '../support/vault-client.ts';

const input = 'aGVsbG8=';
const message = Buffer.from(input, 'base64');

async function made(a: Appliance, method: string, path: string, body?: object) {
  const { status, body: answer, text } = await v1(a, method, path, body);
  assert.equal(status, 200, `${path} ${text}`);
  return answer.data;
}

/** The bytes of a signature or MAC. */
function bytesOf(text: string, encoding: 'base64' | 'base64url' = 'base64'): Buffer {
  return Buffer.from(text.slice(text.lastIndexOf(':') + 1), encoding);
}

async function publicKeyOf(a: Appliance, name: string): Promise<KeyObject> {
  const { keys } = await made(a, 'GET', `transit/export/public-key/${name}?format=pem`);
  return createPublicKey(keys[1]);
}

async function newest(a: Appliance): Promise<unknown[]> {
  const [record] = await a.activity();
  return [record?.action, record?.ringname, record?.validAction, record?.status, record?.props];
}

/** Wraps a key as `bao transit import` does. */
async function wrapped(a: Appliance, key: Uint8Array, hash: 'sha256' | 'sha1' = 'sha256'): Promise<string> {
  const { public_key } = await made(a, 'GET', 'transit/wrapping_key');
  const kek = Buffer.alloc(32, 1);
  const oaep = { key: public_key, oaepHash: hash, padding: constants.RSA_PKCS1_OAEP_PADDING };
  const cipher = createCipheriv('id-aes256-wrap-pad', kek, Buffer.from('a65959a6', 'hex'));
  return Buffer.concat([publicEncrypt(oaep, kek), cipher.update(key), cipher.final()]).toString('base64');
}

test('MACs are those that others make, by the hash of the key, and verify', async () => {
  const a = await testAppliance();
  for (const [size, hash] of [
    [32, 'sha2-256'],
    [48, 'sha2-384'],
    [64, 'sha2-512'],
  ] as const) {
    const name = await ring(a, { type: 'hmac', key_size: size, exportable: true });
    const { keys, type } = await made(a, 'GET', `transit/export/hmac-key/${name}/latest`);
    assert.equal(type, 'hmac');
    const key = Buffer.from(keys[1], 'base64');
    assert.equal(key.length, size);
    const { hmac } = await made(a, 'PUT', `transit/hmac/${name}/${hash}`, { input });
    const right = createHmac(hash.replace('sha2-', 'sha'), key).update(message).digest('base64');
    assert.equal(hmac, `vault:v1:${right}`);
    assert.deepEqual(await newest(a), ['key.mac', name, true, 200, { dialect: 'vault', keyVersion: 1 }]);
    const valid = async (body: object) => (await made(a, 'PUT', `transit/verify/${name}/${hash}`, body)).valid;
    assert.equal(await valid({ input, hmac }), true);
    assert.equal(await valid({ input: 'AAAA', hmac }), false);
    await v1(a, 'PUT', `transit/keys/${name}/rotate`);
    assert.match((await made(a, 'PUT', `transit/hmac/${name}`, { input, algorithm: hash })).hmac, /^vault:v2:/);
    const old = await made(a, 'PUT', `transit/hmac/${name}/${hash}`, { input, key_version: 1 });
    assert.deepEqual(old, { hmac });
    await v1(a, 'PUT', `transit/keys/${name}/config`, { min_decryption_version: 2 });
    const tooOld = 'cannot verify HMAC: version is too old (disallowed by policy)';
    isRefused(await v1(a, 'PUT', `transit/verify/${name}/${hash}`, { input, hmac }), 400, tooOld);
  }
  const cipher = await ring(a);
  const refusal = 'key type aes256-gcm96 does not support HMAC creation';
  isRefused(await v1(a, 'PUT', `transit/hmac/${cipher}`, { input }), 400, refusal);
});

test('a batch of MACs and one of signatures: each item for itself, recorded, with its reference', async () => {
  const a = await testAppliance();
  const signer = await ring(a, { type: 'ecdsa-p256' });
  const batch_input = [{ input, reference: 'x' }, { input: '##' }, {}];
  const signed = await made(a, 'PUT', `transit/sign/${signer}`, { batch_input });
  const [first, second, third] = signed.batch_results;
  assert.deepEqual(Object.keys(first).sort(), ['key_version', 'reference', 'signature']);
  assert.equal(first.reference, 'x');
  const wrong = 'unable to decode input as base64: illegal base64 data at input byte 0';
  assert.deepEqual(second, { error: wrong, key_version: 0, reference: '' });
  assert.deepEqual(third, { error: 'missing input', key_version: 0, reference: '' });
  const records = (await a.activity()).slice(0, 3).map(({ action, status }) => [action, status]);
  assert.deepEqual(records.reverse(), [
    ['key.sign', 200],
    ['key.sign', 400],
    ['key.sign', 400],
  ]);
  const verified = await made(a, 'PUT', `transit/verify/${signer}`, {
    batch_input: [
      { input, signature: first.signature, reference: 'y' },
      { input: 'AAAA', signature: first.signature },
      { input, signature: 'vault:v7:AAAA' },
    ],
  });
  assert.deepEqual(verified.batch_results, [
    { valid: true, reference: 'y' },
    { valid: false, reference: '' },
    { valid: false, error: 'invalid signature: version is too new', reference: '' },
  ]);
  const many = { batch_input: Array.from({ length: 1001 }, () => ({ input })) };
  for (const path of ['sign', 'verify', 'hmac']) {
    const { status, body } = await v1(a, 'PUT', `transit/${path}/${signer}`, many);
    assert.equal(status, 400);
    assert.match(body.errors[0], /at most 1000 items, got 1001/);
    for (const wrongItem of ['x', 1, null]) {
      assert.equal((await v1(a, 'PUT', `transit/${path}/${signer}`, { batch_input: [wrongItem] })).status, 400);
    }
  }
  for (const field of ['context', 'associated_data']) {
    const refusal = `${field} is not supported for signatures: it would not be bound to one`;
    const bound = { batch_input: [{ input, [field]: 'AAAA' }] };
    isRefused(await v1(a, 'PUT', `transit/sign/${signer}`, bound), 400, refusal);
  }
});

test('signatures are those that others verify: curves, marshalings, paddings and salts', async () => {
  const a = await testAppliance();
  for (const [type, hash] of [
    ['ecdsa-p256', 'sha2-256'],
    ['ecdsa-p384', 'sha2-384'],
    ['ecdsa-p521', 'sha2-512'],
  ] as const) {
    const name = await ring(a, { type });
    const key = await publicKeyOf(a, name);
    const nodeHash = hash.replace('sha2-', 'sha');
    const asn1 = (await made(a, 'PUT', `transit/sign/${name}/${hash}`, { input })).signature;
    assert.ok(verify(nodeHash, message, key, bytesOf(asn1)));
    const jws = { marshaling_algorithm: 'jws', hash_algorithm: hash };
    const { signature } = await made(a, 'PUT', `transit/sign/${name}`, { input, ...jws });
    assert.match(signature, /^vault:v1:[A-Za-z0-9_-]+$/);
    assert.ok(verify(nodeHash, message, { key, dsaEncoding: 'ieee-p1363' }, bytesOf(signature, 'base64url')));
    assert.equal((await made(a, 'PUT', `transit/verify/${name}`, { input, signature, ...jws })).valid, true);
    const notForUrls = `vault:v1:${bytesOf(signature, 'base64url').toString('base64')}=`;
    const refusal = 'invalid base64 signature value';
    isRefused(await v1(a, 'PUT', `transit/verify/${name}`, { input, signature: notForUrls, ...jws }), 400, refusal);
  }
  const name = await ring(a, { type: 'rsa-2048' });
  const key = await publicKeyOf(a, name);
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  for (const [salt_length, saltLength] of [
    ['auto', 222],
    [undefined, 222],
    ['hash', 32],
    [20, 20],
    ['20', 20],
    [null, 222],
  ] as const) {
    const { signature } = await made(a, 'PUT', `transit/sign/${name}`, { input, salt_length });
    assert.ok(verify('sha256', message, { key, padding, saltLength }, bytesOf(signature)), `${salt_length}`);
    assert.equal((await made(a, 'PUT', `transit/verify/${name}`, { input, signature })).valid, true);
    const asHash = await made(a, 'PUT', `transit/verify/${name}`, { input, signature, salt_length: 'hash' });
    assert.equal(asHash.valid, salt_length === 'hash');
  }
  const pkcs = { signature_algorithm: 'pkcs1v15', salt_length: 'hash' };
  const { signature } = await made(a, 'PUT', `transit/sign/${name}/sha2-384`, { input, ...pkcs });
  assert.ok(verify('sha384', message, key, bytesOf(signature)));
});

test('an RSA key has one purpose: to sign, unless `uses` says another', async () => {
  const a = await testAppliance();
  const signer = await ring(a, { type: 'rsa-2048' });
  const { status, body } = await v1(a, 'PUT', `transit/encrypt/${signer}`, { plaintext: input });
  assert.equal(status, 400);
  assert.match(body.errors[0], /^the key is not for encrypt: it is for sign, verify/);
  for (const uses of [['encrypt', 'decrypt'], 'encrypt, decrypt']) {
    const name = await ring(a, { type: 'rsa-3072', uses });
    const { ciphertext } = await made(a, 'PUT', `transit/encrypt/${name}`, { plaintext: input });
    assert.equal((await made(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).plaintext, input);
    const dataKey = await made(a, 'PUT', `transit/datakey/plaintext/${name}`);
    const opened = await made(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: dataKey.ciphertext });
    assert.equal(opened.plaintext, dataKey.plaintext);
    const { data } = (await v1(a, 'GET', `transit/keys/${name}`)).body;
    assert.deepEqual([data.supports_encryption, data.supports_decryption, data.supports_signing], [true, true, false]);
  }
});

test('ML-DSA keys are made by their parameter set, and sign', async () => {
  const a = await testAppliance();
  for (const [parameter_set, type] of [
    ['44', 'ml-dsa-44'],
    ['65', 'ml-dsa-65'],
    [undefined, 'ml-dsa-44'],
  ]) {
    const name = await ring(a, { type: 'ml-dsa', parameter_set });
    const { key } = (await a.call('GET', `/managed-keys/${name}`)).body;
    assert.equal(key.type, type);
    const { signature } = await made(a, 'PUT', `transit/sign/${name}`, { input });
    assert.equal((await made(a, 'PUT', `transit/verify/${name}`, { input, signature })).valid, true);
    const read = await made(a, 'GET', `transit/keys/${name}`);
    assert.deepEqual([read.type, read.parameter_set], ['ml-dsa', parameter_set ?? '44']);
  }
  isRefused(
    await v1(a, 'PUT', 'transit/keys/x', { type: 'ml-dsa', parameter_set: '3' }),
    400,
    'unknown key type ml-dsa',
  );
});

test('random bytes and hashes are for any credential, and recorded', async () => {
  const a = await testAppliance();
  const { key: token, keyid } = await a.keyWith();
  const got = await v1(a, 'PUT', 'any/mount/random/24', { format: 'hex' }, { token });
  assert.match(got.body.data.random_bytes, /^[0-9a-f]{48}$/);
  const [record] = await a.activity();
  assert.deepEqual([record?.action, record?.keyid, record?.props], ['key.random', keyid, { dialect: 'vault' }]);
  const sum = await v1(a, 'PUT', 'transit/hash/sha3-256', { input, format: 'base64' }, { token });
  assert.equal(sum.body.data.sum, 'Mzi+aU9QxfM4gUmGzfBoZFOoiLhPQk15KvS5ICOY85I=');
  assert.equal((await a.activity())[0]?.action, 'key.hash');
  const native = await a.call('POST', '/managed-keys/hash', { input, hash: 'sha2-256' }, { key: token });
  assert.equal(native.body.hash, 'LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=');
  const { body } = await a.call('POST', '/managed-keys/random', {}, { key: token });
  assert.equal(Buffer.from(body.random, 'base64').length, 32);
  for (const bytes of [0, 131_073, 1.5, '5']) {
    assert.equal((await a.call('POST', '/managed-keys/random', { bytes })).status, 400, `${bytes}`);
  }
  for (const path of ['random', 'hash', 'cache-config', 'config/keys']) {
    isRefused(await v1(a, 'PUT', `transit/${path}`, { input }, { token: 'kms_wrong' }), 403, 'permission denied');
  }
  for (const name of ['random', 'hash', 'wrapping-key']) {
    isRefused(await v1(a, 'PUT', `transit/keys/${name}`, {}), 400, `name: expected another name than ${name}`);
  }
});

test('settings can be read and change nothing', async () => {
  const a = await testAppliance();
  assert.deepEqual(await made(a, 'GET', 'transit/cache-config'), { size: 0 });
  const { body } = await v1(a, 'PUT', 'transit/cache-config', { size: 500 });
  assert.deepEqual(body.data, { size: 0 });
  assert.match(body.warnings[0], /nothing was changed/);
  assert.deepEqual(await made(a, 'PUT', 'transit/config/keys', { disable_upsert: 'true' }), { disable_upsert: true });
  const { status, body: refused } = await v1(a, 'PUT', 'transit/config/keys', { disable_upsert: false });
  assert.equal(status, 400);
  assert.match(refused.errors[0], /never makes a key/);
});

test('a key comes in as Vault’s tools wrap it, and opens what Vault encrypted with it', async () => {
  const a = await testAppliance();
  const key = Buffer.alloc(32, 7);
  const ciphertext = await wrapped(a, key);
  assert.equal((await v1(a, 'PUT', 'transit/keys/moved/import', { ciphertext, exportable: true })).status, 204);
  const [action, name, granted, status, props] = await newest(a);
  assert.deepEqual([action, name, granted, status], ['key.import', 'moved', true, 200]);
  assert.equal((props as { dialect: string }).dialect, 'vault');
  const nonce = Buffer.alloc(12, 3);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const sealed = Buffer.concat([nonce, cipher.update(message), cipher.final(), cipher.getAuthTag()]);
  const theirs = `vault:v1:${sealed.toString('base64')}`;
  assert.equal((await made(a, 'PUT', 'transit/decrypt/moved', { ciphertext: theirs })).plaintext, input);
  const { keys } = await made(a, 'GET', 'transit/export/encryption-key/moved');
  assert.deepEqual(keys, { 1: key.toString('base64') });
  const next = Buffer.alloc(32, 8);
  const second = { ciphertext: await wrapped(a, next, 'sha1'), hash_function: 'sha1' };
  assert.equal((await v1(a, 'PUT', 'transit/keys/moved/import_version', second)).status, 204);
  const both = await made(a, 'GET', 'transit/export/encryption-key/moved');
  assert.deepEqual(both.keys, { 1: key.toString('base64'), 2: next.toString('base64') });
  const read = await made(a, 'GET', 'transit/keys/moved');
  assert.deepEqual([read.imported_key, read.exportable, read.latest_version], [true, true, 2]);
  const rows: [object, RegExp][] = [
    [{ ciphertext, allow_plaintext_backup: true }, /^plaintext backup is disallowed/],
    [{ ciphertext, convergent_encryption: true }, /convergent/],
    [{ ciphertext, public_key: 'x' }, /^only one of the following/],
    [{ ciphertext, auto_rotate_period: '24h' }, /^allow_rotation must be set/],
    [{ ciphertext, hash_function: 'SHA224' }, /^unknown hash function: SHA224/],
    [{}, /must be set$/],
  ];
  for (const [body, expected] of rows) {
    const refusal = await v1(a, 'PUT', 'transit/keys/other/import', body);
    assert.equal(refusal.status, 400);
    assert.match(refusal.body.errors[0], expected);
  }
  const versioned = await v1(a, 'PUT', 'transit/keys/moved/import_version', { ciphertext, version: 1 });
  assert.equal(versioned.status, 400);
  const rotating = { ciphertext, auto_rotate_period: '24h', allow_rotation: true };
  assert.equal((await v1(a, 'PUT', 'transit/keys/rotating/import', rotating)).status, 204);
  assert.equal((await made(a, 'GET', 'transit/keys/rotating')).auto_rotate_period, 86_400);
});

test('private keys go out as OpenBao writes them, where they may, and are recorded as such', async () => {
  const a = await testAppliance();
  for (const type of ['rsa-2048', 'ecdsa-p256', 'ed25519']) {
    const name = await ring(a, { type, exportable: true });
    const key = await publicKeyOf(a, name);
    const usual = (await made(a, 'GET', `transit/export/signing-key/${name}`)).keys[1];
    assert.deepEqual((await newest(a)).slice(0, 4), ['key.export', name, true, 200]);
    const pem = (await made(a, 'GET', `transit/export/signing-key/${name}/1?format=pem`)).keys[1];
    const der = (await made(a, 'GET', `transit/export/signing-key/${name}/v1?format=der`)).keys[1];
    const all = [
      createPrivateKey(pem),
      createPrivateKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'pkcs8' }),
      ...(type === 'ed25519' ? [] : [createPrivateKey(usual)]),
    ];
    for (const each of all) {
      assert.ok(
        verify(
          type === 'ed25519' ? null : 'sha256',
          message,
          key,
          sign(type === 'ed25519' ? null : 'sha256', message, each),
        ),
      );
    }
    const kind = { 'rsa-2048': 'RSA PRIVATE KEY', 'ecdsa-p256': 'EC PRIVATE KEY', ed25519: '' }[type];
    if (kind !== '') assert.match(usual, new RegExp(`^-----BEGIN ${kind}-----\n`));
    else assert.equal(Buffer.from(usual, 'base64').length, 64);
  }
  const kept = await ring(a, { type: 'ecdsa-p256' });
  const refusal = 'private key material is not exportable';
  isRefused(await v1(a, 'GET', `transit/export/signing-key/${kept}`), 400, refusal);
  isRefused(await v1(a, 'GET', `transit/byok-export/${kept}/${kept}`), 400, refusal);
  assert.equal((await made(a, 'GET', `transit/export/public-key/${kept}/latest?format=der`)).type, 'ecdsa-p256');
  const cipher = await ring(a, { exportable: true });
  isRefused(await v1(a, 'GET', `transit/export/signing-key/${cipher}`), 400, 'signing not supported for the key');
  assert.deepEqual((await newest(a)).slice(0, 4), ['key.export', cipher, true, 400]);
});

test('byok-export wraps to another key, whose holder unwraps it; the caller needs to read that key', async () => {
  const a = await testAppliance();
  const target = await ring(a, { type: 'rsa-2048', exportable: true });
  const source = await ring(a, { exportable: true });
  await v1(a, 'PUT', `transit/keys/${source}/rotate`);
  const privateKey = createPrivateKey((await made(a, 'GET', `transit/export/signing-key/${target}`)).keys[1]);
  const clear = (await made(a, 'GET', `transit/export/encryption-key/${source}`)).keys;
  const { keys, name, type } = await made(a, 'GET', `transit/byok-export/${target}/${source}?hash=SHA512`);
  assert.deepEqual([name, type, Object.keys(keys)], [source, 'aes256-gcm96', ['1', '2']]);
  for (const version of ['1', '2']) {
    const bytes = Buffer.from(keys[version], 'base64');
    const kek = privateDecrypt({ key: privateKey, oaepHash: 'sha512' }, bytes.subarray(0, 256));
    const unwrap = createDecipheriv('id-aes256-wrap-pad', kek, Buffer.from('a65959a6', 'hex'));
    const opened = Buffer.concat([unwrap.update(bytes.subarray(256)), unwrap.final()]);
    assert.equal(opened.toString('base64'), clear[version]);
  }
  const blind = await a.keyWith(`key.${source}.export`);
  const asked = `transit/byok-export/${target}/${source}`;
  isRefused(await v1(a, 'GET', asked, undefined, { token: blind.key }), 403, 'permission denied');
  isRefused(
    await v1(a, 'GET', `transit/byok-export/nope/${source}`, undefined, { token: blind.key }),
    403,
    'permission denied',
  );
  const seeing = await a.keyWith(`key.${source}.export`, `key.${target}.read`);
  assert.equal((await v1(a, 'GET', asked, undefined, { token: seeing.key })).status, 200);
});

test('a softly deleted key does nothing, is read as such, and comes back; other states say why they refuse', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const { ciphertext } = await made(a, 'PUT', `transit/encrypt/${name}`, { plaintext: input });
  const soft = await made(a, 'DELETE', `transit/keys/${name}/soft-delete`);
  assert.deepEqual([soft.name, soft.soft_deleted], [name, true]);
  for (const [what, work, body] of [
    ['encrypt', 'encrypt', { plaintext: input }],
    ['decrypt', 'decrypt', { ciphertext }],
  ] as const) {
    const suspended = `the key is suspended, so it cannot ${work}`;
    isRefused(await v1(a, 'PUT', `transit/${what}/${name}`, body), 400, suspended);
  }
  assert.equal((await made(a, 'GET', `transit/keys/${name}`)).soft_deleted, true);
  assert.equal((await made(a, 'PUT', `transit/keys/${name}/soft-delete-restore`)).soft_deleted, false);
  assert.equal((await made(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).plaintext, input);
  await a.call('POST', `/managed-keys/${name}/state`, { state: 'deactivated' });
  const { status, body } = await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: input });
  assert.equal(status, 400);
  assert.match(body.errors[0], /^the key is deactivated, so it cannot encrypt/);
  assert.equal((await made(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).plaintext, input);
});

test('an alias works wherever a name does, and flags go by the name', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const signer = await ring(a, { type: 'ed25519' });
  await a.call('POST', `/managed-keys/${name}/aliases`, { alias: 'app/db' });
  await a.call('POST', `/managed-keys/${signer}/aliases`, { alias: 'release' });
  const { ciphertext } = await made(a, 'PUT', 'transit/encrypt/app%2Fdb', { plaintext: input });
  assert.equal((await made(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).plaintext, input);
  const { signature } = await made(a, 'PUT', 'transit/sign/release/sha2-256', { input });
  assert.equal((await made(a, 'PUT', 'transit/verify/release', { input, signature })).valid, true);
  assert.equal((await made(a, 'GET', 'transit/keys/release')).name, signer);
  assert.equal((await v1(a, 'PUT', 'transit/keys/release', { type: 'ed25519' })).status, 204, 'there already');
  assert.equal((await v1(a, 'PUT', 'transit/keys/release/rotate')).status, 204);
  const own = await a.keyWith(`key.${signer}.sign`);
  assert.equal((await v1(a, 'PUT', 'transit/sign/release', { input }, { token: own.key })).status, 200);
  const byAlias = await a.keyWith('key.release.sign');
  isRefused(await v1(a, 'PUT', 'transit/sign/release', { input }, { token: byAlias.key }), 403, 'permission denied');
  for (const [token, expected] of [
    [own.key, ['create', 'update']],
    [byAlias.key, ['deny']],
  ] as const) {
    const path = 'transit/sign/release';
    const { data } = (await v1(a, 'PUT', 'sys/capabilities-self', { path }, { token })).body;
    assert.deepEqual(data.capabilities, expected);
  }
});

test('trim destroys versions, which are read and exported no more', async () => {
  const a = await testAppliance();
  const name = await ring(a, { exportable: true });
  for (let n = 0; n < 3; n++) await v1(a, 'PUT', `transit/keys/${name}/rotate`);
  await v1(a, 'PUT', `transit/keys/${name}/config`, { min_decryption_version: 3, min_encryption_version: '3' });
  const trimmed = await made(a, 'PUT', `transit/keys/${name}/trim`, { min_available_version: 3 });
  assert.deepEqual([trimmed.min_available_version, Object.keys(trimmed.keys)], [3, ['3', '4']]);
  const { keys } = await made(a, 'GET', `transit/export/encryption-key/${name}`);
  assert.deepEqual(Object.keys(keys), ['3', '4']);
  const { key } = (await a.call('GET', `/managed-keys/${name}`)).body;
  const destroyed = key.versions.filter(({ state }: { state: string }) => state === 'destroyed');
  assert.equal(destroyed.length, 2);
  const old = 'version for export is below minimum decryption version';
  isRefused(await v1(a, 'GET', `transit/export/encryption-key/${name}/1`), 400, old);
});

test('lists come in parts where that is asked for', async () => {
  const a = await testAppliance();
  for (const name of ['c', 'a', 'b']) await v1(a, 'PUT', `transit/keys/${name}`, {});
  const list = async (more: string) => (await v1(a, 'GET', `transit/keys?list=true${more}`)).body.data?.keys;
  assert.deepEqual(await list('&limit=2'), ['a', 'b']);
  assert.deepEqual(await list('&after=a&limit=1'), ['b']);
  assert.deepEqual(await list('&after=a'), ['b', 'c']);
  assert.deepEqual(await list('&limit=0'), ['a', 'b', 'c']);
  assert.equal(await list('&after=c'), undefined);
});
