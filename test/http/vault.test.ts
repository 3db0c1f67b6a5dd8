// The appliance as Vault transit clients see it: paths, answers, error shapes and quirks as those clients expect;
// access, records, and that no request makes it fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Appliance, type TestKey, testAppliance } from '../support/appliance.ts';
import { isRefused, ring, type Sent, v1 } from '../support/vault-client.ts';
import { freshName } from './samples.ts';

const denied = 'permission denied';

async function encrypted(a: Appliance, name: string, more: object = {}): Promise<string> {
  const { status, text, body } = await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: 'aGVsbG8=', ...more });
  assert.equal(status, 200, text);
  return body.data.ciphertext;
}

test('encrypt, decrypt, rewrap and data keys, through a rotation', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const first = await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: 'aGVsbG8=' });
  assert.match(first.body.request_id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  const { data, ...envelope } = first.body;
  const rest = { lease_id: '', renewable: false, lease_duration: 0, wrap_info: null, warnings: null, auth: null };
  assert.deepEqual(envelope, { request_id: envelope.request_id, ...rest });
  assert.equal(data.key_version, 1);
  assert.match(data.ciphertext, /^vault:v1:[A-Za-z0-9+/]+={0,2}$/);
  assert.equal((await v1(a, 'POST', `transit/keys/${name}/rotate`)).text, '');
  const second = await encrypted(a, name);
  assert.match(second, /^vault:v2:/);
  for (const ciphertext of [data.ciphertext, second]) {
    const { body } = await v1(a, 'POST', `transit/decrypt/${name}`, { ciphertext });
    assert.deepEqual(body.data, { plaintext: 'aGVsbG8=' });
  }
  const rewrapped = (await v1(a, 'POST', `transit/rewrap/${name}`, { ciphertext: data.ciphertext })).body.data;
  assert.equal(rewrapped.key_version, 2);
  assert.match(rewrapped.ciphertext, /^vault:v2:/);
  const old = (await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: '', key_version: '1' })).body.data;
  assert.equal(old.key_version, 1);
  assert.equal((await v1(a, 'PUT', `transit/decrypt/${name}`, old)).body.data.plaintext, '');
  for (const [bits, length] of [
    [undefined, 32],
    [128, 16],
    ['256', 32],
    [512, 64],
  ]) {
    const { body } = await v1(a, 'PUT', `transit/datakey/plaintext/${name}`, { bits });
    assert.equal(Buffer.from(body.data.plaintext, 'base64').length, length);
    const { ciphertext } = body.data;
    assert.equal(
      (await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).body.data.plaintext,
      body.data.plaintext,
    );
  }
  const wrapped = (await v1(a, 'POST', `transit/datakey/wrapped/${name}`)).body.data;
  assert.deepEqual(Object.keys(wrapped).sort(), ['ciphertext', 'key_version']);
});

test('what is bound to a message must come with it', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const other = await ring(a);
  const ciphertext = await encrypted(a, name, { associated_data: 'YQ==' });
  const good = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext, associated_data: 'YQ==' });
  assert.equal(good.body.data.plaintext, 'aGVsbG8=');
  const failed = 'cipher: message authentication failed';
  isRefused(await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext }), 400, failed);
  isRefused(await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext, associated_data: 'Yg==' }), 400, failed);
  isRefused(await v1(a, 'PUT', `transit/decrypt/${other}`, { ciphertext, associated_data: 'YQ==' }), 400, failed);
  const plain = await encrypted(a, name, { associated_data: '', context: '', key_version: 0 });
  assert.equal((await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: plain })).status, 200);
});

test('rings that derive their keys need a context; others refuse one', async () => {
  const a = await testAppliance();
  const name = await ring(a, { type: 'chacha20-poly1305', derived: true });
  const missing =
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key";
  isRefused(await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: '' }), 400, missing);
  const ciphertext = await encrypted(a, name, { context: 'Y3R4' });
  const good = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext, context: 'Y3R4' });
  assert.equal(good.body.data.plaintext, 'aGVsbG8=');
  const wrong = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext, context: 'Y3R5' });
  isRefused(wrong, 400, 'chacha20poly1305: message authentication failed');
  const key = (await v1(a, 'POST', `transit/datakey/plaintext/${name}`, { context: 'Y3R4' })).body.data;
  const again = await v1(a, 'POST', `transit/decrypt/${name}`, { context: 'Y3R4', ciphertext: key.ciphertext });
  assert.equal(again.body.data.plaintext, key.plaintext);
  const plain = await ring(a);
  const { status, body } = await v1(a, 'PUT', `transit/encrypt/${plain}`, { plaintext: '', context: 'Y3R4' });
  assert.equal(status, 400);
  assert.match(body.errors[0], /^context: the messages of this key have no derived keys/);
});

test('errors are those of OpenBao, word for word', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const signer = await ring(a, { type: 'ed25519' });
  const noKey = 'encryption key not found';
  const rows: [string, string, object | undefined, number, ...string[]][] = [
    ['GET', 'transit/keys/nope', undefined, 404],
    ['PUT', 'transit/encrypt/nope', { plaintext: '' }, 400, noKey],
    ['POST', 'transit/decrypt/nope', { ciphertext: 'vault:v1:AAAA' }, 400, noKey],
    ['POST', 'transit/datakey/plaintext/nope', {}, 400, noKey],
    ['POST', 'transit/rewrap/nope', { ciphertext: 'x' }, 400, noKey],
    ['POST', 'transit/sign/nope', { input: '' }, 400, 'signing key not found'],
    ['POST', 'transit/verify/nope', { input: '', signature: 'x' }, 400, 'signature verification key not found'],
    ['POST', `transit/encrypt/${name}`, { plaintext: 'aGk' }, 400, 'illegal base64 data at input byte 0'],
    ['POST', `transit/encrypt/${name}`, { plaintext: '###' }, 400, 'illegal base64 data at input byte 0'],
    ['POST', `transit/encrypt/${name}`, {}, 400, 'missing plaintext to encrypt'],
    ['POST', `transit/encrypt/${name}`, { plaintext: null }, 400, 'missing plaintext to encrypt'],
    ['POST', `transit/decrypt/${name}`, {}, 400, 'missing ciphertext to decrypt'],
    ['POST', `transit/decrypt/${name}`, { ciphertext: 'xx' }, 400, 'invalid ciphertext: no prefix'],
    ['POST', `transit/decrypt/${name}`, { ciphertext: 'vault:v9:AAAA' }, 400, 'invalid ciphertext: version is too new'],
    [
      'POST',
      `transit/decrypt/${name}`,
      { ciphertext: `vault:v1:${'A'.repeat(44)}` },
      400,
      'cipher: message authentication failed',
    ],
    [
      'POST',
      `transit/encrypt/${name}`,
      { plaintext: '', key_version: 2 },
      400,
      'requested version for encryption is higher than the latest key version',
    ],
    [
      'POST',
      `transit/encrypt/${signer}`,
      { plaintext: '' },
      400,
      'message encryption not supported for key type ed25519',
    ],
    ['POST', `transit/sign/${name}`, { input: '' }, 400, 'key type aes256-gcm96 does not support signing'],
    [
      'DELETE',
      `transit/keys/${name}`,
      undefined,
      400,
      `error deleting policy ${name}: deletion is not allowed for this key`,
    ],
    ['GET', `transit/export/encryption-key/${name}`, undefined, 400, 'private key material is not exportable'],
    ['GET', 'nomount', undefined, 404, 'no handler for route "nomount". route entry not found.'],
    ['GET', 'sys/policies', undefined, 404, 'no handler for route "sys/policies". route entry not found.'],
    ['GET', 'transit/zzz', undefined, 404, '1 error occurred:\n\t* unsupported path\n\n'],
    ['GET', `transit/encrypt/${name}`, undefined, 405, '1 error occurred:\n\t* unsupported operation\n\n'],
    ['GET', `transit/keys/${name}?list=true`, undefined, 404, '1 error occurred:\n\t* unsupported path\n\n'],
    ['PUT', 'auth/token/renew-self', {}, 400, 'invalid lease ID'],
    ['POST', 'auth/approle/login', { role_id: 'a', secret_id: 'b' }, 400, 'invalid role or secret ID'],
  ];
  for (const [method, path, body, status, ...errors] of rows) {
    isRefused(await v1(a, method, path, body), status, ...errors);
  }
});

test('what is refused on purpose says why', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const rows: [string, string, object, RegExp][] = [
    ['POST', 'transit/keys/new', { convergent_encryption: true, derived: true }, /^convergent encryption is not supp/],
    ['POST', 'transit/keys/new', { type: 'hmac', key_size: 40 }, /^invalid key_size 40: .*32, 48 or 64 bytes/],
    ['POST', 'transit/keys/new', { uses: 'sign' }, /^uses: /],
    ['POST', 'transit/keys/new', { uses: [1] }, /^error converting input for field "uses"/],
    ['POST', 'transit/keys/new', { allow_plaintext_backup: true }, /^plaintext backup is disallowed/],
    ['POST', 'transit/keys/new', { type: 'rsa-1024' }, /^unknown key type rsa-1024$/],
    ['POST', 'transit/keys/new', { auto_rotate_period: '10m' }, /^auto rotate period must be 0/],
    ['POST', 'transit/keys/new', { auto_rotate_period: ['24h'] }, /^auto rotate period must be 0/],
    ['POST', 'transit/keys/new', { auto_rotate_period: '24h'.repeat(40) }, /^auto rotate period must be 0/],
    ['POST', 'transit/keys/new', { auto_rotate_period: '9'.repeat(10).concat('d') }, /^auto rotate period must be 0/],
    ['POST', 'transit/keys/new', { derived: [true] }, /^error converting input for field "derived": expected true or/],
    ['POST', `transit/keys/${name}/config`, { exportable: true }, /^exportable: expected false/],
    ['POST', `transit/keys/${name}/config`, { min_decryption_version: 2 }, /^cannot set min decryption version of 2/],
    ['GET', `transit/backup/${name}`, {}, /^plaintext backup is disallowed/],
    ['POST', `transit/restore/${name}`, {}, /^plaintext backup is disallowed/],
    ['POST', 'transit/derive-key/new', {}, /^derive-key is not supported/],
    ['POST', `transit/keys/${name}/csr`, {}, /^certificates are not kept/],
    ['POST', `transit/keys/${name}/set-certificate`, {}, /^certificates are not kept/],
    ['POST', `transit/encrypt/${name}`, { plaintext: 1 }, /"plaintext": expected a string/],
    ['POST', `transit/encrypt/${name}`, { plaintext: '', key_version: 'x' }, /"key_version": expected an integer/],
    ['POST', `transit/encrypt/${name}`, { batch_input: 'x' }, /^error parsing batch input/],
    ['POST', `transit/encrypt/${name}`, { batch_input: [1] }, /^error parsing batch input/],
    ['POST', `transit/encrypt/${name}`, { batch_input: [] }, /^missing batch input to process/],
    ['POST', `transit/datakey/plaintext/${name}`, { bits: 7 }, /^invalid bit length/],
  ];
  for (const [method, path, body, expected] of rows) {
    const got = await v1(a, method, path, method === 'GET' ? undefined : body);
    assert.equal(got.status, 400, `${path} ${got.text}`);
    assert.deepEqual(Object.keys(got.body), ['errors']);
    assert.match(got.body.errors[0], expected);
  }
  isRefused(await v1(a, 'GET', 'transit/keys/new'), 404);
});

test('a list names all rings, or says that it cannot', async () => {
  const a = await testAppliance();
  const { store } = a.tenants[0]?.handle ?? assert.fail('there is no tenant');
  const held = { uses: ['encrypt', 'decrypt'], state: 'active', exportable: false, origin: 'generated' } as const;
  const made = { derived: false, latestVersion: 1, minDecryptVersion: 1, minEncryptVersion: 0 } as const;
  const none = { path: undefined, rotateAfter: undefined, activateAt: undefined, deactivateAt: undefined } as const;
  const rest = { deletionAllowed: false, vaultFormat: false, tags: {}, props: {}, createdAt: 1, updatedAt: 1 } as const;
  const add = (from: number, to: number) =>
    store.transaction(({ managedKeys }) => {
      for (let n = from; n < to; n++) {
        const name = `ring-${n}`.padEnd(128, 'x');
        managedKeys.insert({
          id: `ring_${n}`,
          name,
          displayName: name,
          type: 'aes256-gcm',
          ...held,
          ...made,
          ...none,
          ...rest,
        });
      }
    });
  // Listed in full they would exceed a page's size limit.
  await add(0, 10_000);
  const { status, body } = await v1(a, 'GET', 'transit/keys?list=true');
  assert.deepEqual([status, new Set(body.data.keys).size], [200, 10_000]);
  const { body: page } = await a.call('GET', '/managed-keys?limit=10000');
  assert.ok(page.pagination.hasMore && page.data.length < 10_000);
  await add(10_000, 10_001);
  isRefused(await v1(a, 'GET', 'transit/keys?list=true'), 400, 'more keys than can be listed at once: 10000');
});

test('a ring is read and listed as transit has it', async () => {
  const a = await testAppliance();
  isRefused(await v1(a, 'GET', 'transit/keys?list=true'), 404);
  assert.equal((await v1(a, 'PUT', 'transit/keys/Zeta', { type: 'ecdsa-p256' })).status, 204);
  assert.equal((await v1(a, 'PUT', 'transit/keys/alpha', { auto_rotate_period: '24h' })).status, 204);
  assert.equal((await v1(a, 'PUT', 'transit/keys/alpha', {})).status, 204, 'there already, and the same');
  assert.equal((await v1(a, 'PUT', 'transit/keys/alpha', { type: 'ed25519' })).status, 400);
  for (const value of ['true', 'True', 'TRUE', 't', 'T', '1']) {
    const { body } = await v1(a, 'GET', `transit/keys?list=${value}`);
    assert.deepEqual(body.data, { keys: ['alpha', 'zeta'] }, value);
  }
  for (const value of ['false', '0', '', 'yes', 'tRUE']) {
    assert.equal((await v1(a, 'GET', `transit/keys?list=${value}`)).status, 405, value);
  }
  const { data } = (await v1(a, 'GET', 'transit/keys/ALPHA')).body;
  assert.deepEqual(data, {
    allow_plaintext_backup: false,
    auto_rotate_period: 86400,
    deletion_allowed: false,
    derived: false,
    exportable: false,
    imported_key: false,
    keys: { 1: Math.floor(a.world.now() / 1000) },
    latest_version: 1,
    min_available_version: 0,
    min_decryption_version: 1,
    min_encryption_version: 0,
    name: 'alpha',
    soft_deleted: false,
    supports_decryption: true,
    supports_derivation: true,
    supports_encryption: true,
    supports_signing: false,
    type: 'aes256-gcm96',
  });
  const { keys } = (await v1(a, 'GET', 'transit/keys/zeta')).body.data;
  assert.equal(keys[1].name, 'P-256');
  assert.match(keys[1].public_key, /^-----BEGIN PUBLIC KEY-----\n/);
});

test('config: older versions are not read, nor used, and are again', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const ciphertext = await encrypted(a, name);
  await v1(a, 'PUT', `transit/keys/${name}/rotate`);
  const config = (body: object) => v1(a, 'POST', `transit/keys/${name}/config`, body);
  assert.equal((await config({ min_decryption_version: '2', deletion_allowed: 'true' })).text, '');
  const tooOld = 'ciphertext or signature version is disallowed by policy (too old)';
  isRefused(await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext }), 400, tooOld);
  assert.deepEqual(Object.keys((await v1(a, 'GET', `transit/keys/${name}`)).body.data.keys), ['2']);
  assert.equal((await config({ min_decryption_version: 1 })).status, 204);
  assert.equal((await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).status, 200);
  const gone = await v1(a, 'DELETE', `transit/keys/${name}`);
  assert.deepEqual([gone.status, gone.text], [204, '']);
  isRefused(await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext }), 400, 'encryption key not found');
  isRefused(await v1(a, 'GET', `transit/keys/${name}`), 404);
  const { data } = (await a.call('GET', '/managed-keys?deleted=true')).body;
  assert.equal((await a.call('POST', `/managed-keys/${data[0].id}/restore`)).status, 200);
  assert.equal((await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext })).status, 200);
});

test('signatures of both types, by hash in the path and in the body', async () => {
  const a = await testAppliance();
  for (const type of ['ed25519', 'ecdsa-p256']) {
    const name = await ring(a, { type });
    const sign = async (path: string, more: object): Promise<string> => {
      const body = { input: 'aGVsbG8=', key_version: '0', signature_algorithm: 'pkcs1v15', ...more };
      const { data } = (await v1(a, 'PUT', path, body)).body;
      assert.equal(data.key_version, 1);
      return data.signature;
    };
    const verify = async (path: string, more: object): Promise<boolean> =>
      (await v1(a, 'PUT', path, { input: 'aGVsbG8=', ...more })).body.data.valid;
    const signature = await sign(`transit/sign/${name}`, {});
    assert.equal(await verify(`transit/verify/${name}/sha2-256`, { signature }), true);
    assert.equal(await verify(`transit//verify/${name}//sha2-256`, { signature, input: 'aGVsbG9v' }), false);
    const longer = await sign(`transit/sign/${name}/sha2-512`, {});
    assert.equal(await verify(`transit/verify/${name}`, { signature: longer, hash_algorithm: 'sha2-512' }), true);
    const input = 'LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=';
    const prehashed = await sign(`transit/sign/${name}`, { input, prehashed: true });
    assert.equal(await verify(`transit/verify/${name}`, { signature: prehashed, input, prehashed: true }), true);
    if (type === 'ecdsa-p256') assert.equal(await verify(`transit/verify/${name}`, { signature: prehashed }), true);
    await v1(a, 'PUT', `transit/keys/${name}/rotate`);
    assert.equal(await verify(`transit/verify/${name}`, { signature }), true);
  }
});

test('a signature is bound to nothing but its input, so no more is taken', async () => {
  const a = await testAppliance();
  const name = await ring(a, { type: 'ed25519' });
  const { signature } = (await v1(a, 'PUT', `transit/sign/${name}`, { input: 'AAAA', context: '' })).body.data;
  for (const field of ['context', 'associated_data']) {
    const refusal = `${field} is not supported for signatures: it would not be bound to one`;
    isRefused(await v1(a, 'PUT', `transit/sign/${name}`, { input: 'AAAA', [field]: 'AAAA' }), 400, refusal);
    const body = { input: 'AAAA', signature, [field]: 'AAAA' };
    isRefused(await v1(a, 'PUT', `transit/verify/${name}`, body), 400, refusal);
  }
});

test('a data key comes under the version that was asked for', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  await v1(a, 'PUT', `transit/keys/${name}/rotate`);
  const dataKey = (key_version?: unknown) => v1(a, 'PUT', `transit/datakey/plaintext/${name}`, { key_version });
  for (const [asked, version] of [
    [1, 1],
    ['1', 1],
    [0, 2],
    [undefined, 2],
    [2, 2],
  ]) {
    const { data } = (await dataKey(asked)).body;
    assert.deepEqual([data.key_version, data.ciphertext.split(':')[1]], [version, `v${version}`]);
    const opened = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: data.ciphertext });
    assert.equal(opened.body.data.plaintext, data.plaintext);
  }
  isRefused(await dataKey(99), 400, 'requested version for encryption is higher than the latest key version');
  isRefused(await dataKey(-1), 400, 'requested version for encryption is negative');
  assert.equal((await dataKey({})).status, 400);
});

test('rings may have the names of operations, and mounts several parts', async () => {
  const a = await testAppliance();
  for (const name of ['keys', 'encrypt', 'sign', 'rotate', 'datakey', 'config']) {
    assert.equal((await v1(a, 'PUT', `transit/keys/${name}`, {})).status, 204);
    assert.equal((await v1(a, 'GET', `transit/keys/${name}`)).body.data.name, name);
    for (const mount of ['transit', 'team/transit', 'team/encrypt', 'team/sign', 'team/verify']) {
      const ciphertext = (await v1(a, 'PUT', `${mount}/encrypt/${name}`, { plaintext: 'AAAA' })).body.data?.ciphertext;
      const opened = await v1(a, 'PUT', `${mount}/decrypt/${name}`, { ciphertext });
      assert.equal(opened.body.data?.plaintext, 'AAAA', `${mount} ${name}`);
    }
    assert.equal((await v1(a, 'PUT', `transit/datakey/plaintext/${name}`, {})).status, 200);
    assert.equal((await v1(a, 'PUT', `transit/keys/${name}/rotate`)).status, 204);
    assert.equal((await v1(a, 'GET', `transit/keys/${name}`)).body.data.latest_version, 2);
  }
  for (const mount of ['transit', 'keys', 'team/keys', 'a/b/c']) {
    const { keys } = (await v1(a, 'GET', `${mount}/keys?list=true`)).body.data;
    assert.equal(keys.length, 6, mount);
  }
  isRefused(await v1(a, 'PUT', 'transit/sign/release/md5', { input: '' }), 400, 'invalid hash algorithm "md5"');
});

test('what is called a hash has the length of one, signed and verified', async () => {
  const a = await testAppliance();
  const lengths = { 'sha2-224': 28, 'sha2-256': 32, 'sha2-384': 48, 'sha2-512': 64 };
  const name = await ring(a, { type: 'ecdsa-p256' });
  const long = new Uint8Array(700_000).map((_, n) => n);
  for (const [hash, right] of Object.entries(lengths)) {
    const input = long.subarray(0, right).toBase64();
    const path = (what: string) => `transit/${what}/${name}/${hash}`;
    const signed = await v1(a, 'PUT', path('sign'), { input, prehashed: true });
    assert.equal(signed.status, 200, hash);
    const { signature } = signed.body.data;
    const verified = await v1(a, 'PUT', path('verify'), { input, prehashed: true, signature });
    assert.equal(verified.body.data.valid, true, hash);
    for (const length of [0, 1, 20, 27, 28, 29, 31, 32, 33, 47, 48, 49, 63, 64, 65, 8193, 700_000]) {
      if (length === right) continue;
      const body = { input: long.subarray(0, length).toBase64(), prehashed: true, signature };
      const refusal = `prehashed input: expected the ${right} bytes of ${hash}, got ${length}`;
      for (const what of ['sign', 'verify']) isRefused(await v1(a, 'PUT', path(what), body), 400, refusal);
      const native = { input: body.input, prehashed: true, hash, signature };
      for (const what of ['sign', 'verify']) {
        const answer = await a.call('POST', `/managed-keys/${name}/${what}`, native);
        assert.deepEqual([answer.status, answer.body.message], [400, refusal]);
      }
    }
  }
  // Ed25519 signs the input as given, whatever hash is named.
  const signer = await ring(a, { type: 'ed25519' });
  for (const length of [0, 1, 32, 700_000]) {
    const input = long.subarray(0, length).toBase64();
    const { signature } = (await v1(a, 'PUT', `transit/sign/${signer}`, { input, prehashed: true })).body.data;
    for (const prehashed of [true, false]) {
      const { body } = await v1(a, 'PUT', `transit/verify/${signer}`, { input, prehashed, signature });
      assert.equal(body.data.valid, true, `${length}`);
    }
  }
});

test('a data key in clear needs another flag than one that is encrypted alone', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const wrapping = await a.keyWith(`key.${name}.datakey-wrapped`);
  const showing = await a.keyWith(`key.${name}.datakey`);
  const get = (kind: string, { key }: TestKey) => v1(a, 'PUT', `transit/datakey/${kind}/${name}`, {}, { token: key });
  assert.deepEqual(Object.keys((await get('wrapped', wrapping)).body.data).sort(), ['ciphertext', 'key_version']);
  isRefused(await get('plaintext', wrapping), 403, 'permission denied');
  const shown = await get('plaintext', showing);
  assert.deepEqual(Object.keys(shown.body.data).sort(), ['ciphertext', 'key_version', 'plaintext']);
  isRefused(await get('wrapped', showing), 403, 'permission denied');
  const native = (end: string, { key }: TestKey) =>
    a.call('POST', `/managed-keys/${name}/${end}`, { wrapped: false, plaintext: true }, { key });
  const { status, body } = await native('datakey-wrapped', wrapping);
  assert.deepEqual([status, Object.keys(body).sort()], [200, ['ciphertext', 'keyVersion']]);
  assert.equal((await native('datakey', wrapping)).status, 403);
});

test('line ends in base64 are skipped everywhere, as Go skips them', async () => {
  const a = await testAppliance();
  const name = await ring(a, { derived: true });
  const context = 'Y29udGV4dA==';
  const plaintext = 'aGVsbG8=';
  const ciphertext = await encrypted(a, name, { context });
  const broken = (text: string) => {
    const start = text.startsWith('vault:') ? text.indexOf(':', 6) + 1 : 0;
    const [head, tail] = [text.slice(0, start), text.slice(start)];
    const folded = tail.replace(/(.{5})/g, '$1\r\n');
    return [`${text}\n`, `${text}\r\n`, `${text}\n\n\r`, `${head}\n${tail}`, head + folded, `${head}\r${folded}\n`];
  };
  for (const form of broken(ciphertext)) {
    const body = { ciphertext: form, context: `${context}\n` };
    const opened = await v1(a, 'PUT', `transit/decrypt/${name}`, body);
    assert.deepEqual([opened.status, opened.body.data?.plaintext], [200, plaintext], JSON.stringify(form));
    assert.equal((await v1(a, 'PUT', `transit/rewrap/${name}`, body)).status, 200);
    for (const what of ['decrypt', 'rewrap']) {
      const batch = await v1(a, 'PUT', `transit/${what}/${name}`, { batch_input: [body, { ciphertext, context }] });
      assert.equal(batch.status, 200, `${what} ${batch.text}`);
    }
  }
  for (const form of broken(plaintext)) {
    const sealed = await encrypted(a, name, { plaintext: form, context });
    const { body } = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: sealed, context });
    assert.equal(body.data.plaintext, plaintext);
  }
  for (const type of ['ed25519', 'ecdsa-p256']) {
    const signer = await ring(a, { type });
    const { signature } = (await v1(a, 'PUT', `transit/sign/${signer}`, { input: `${plaintext}\n` })).body.data;
    for (const form of broken(signature)) {
      const verified = await v1(a, 'PUT', `transit/verify/${signer}`, { input: plaintext, signature: form });
      assert.deepEqual([verified.status, verified.body.data?.valid], [200, true], JSON.stringify(form));
    }
  }
  // Nothing else is skipped, and nothing before the version.
  const others = [
    ` ${ciphertext}`,
    `\n${ciphertext}`,
    `${ciphertext} `,
    ciphertext.replace(':v', ':\nv'),
    `${ciphertext}\t`,
  ];
  for (const form of [...others, ciphertext.replace('v1:', 'v1\n:'), `${ciphertext}=`, `${ciphertext}\u2028`]) {
    const { status } = await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: form, context });
    assert.equal(status, 400, JSON.stringify(form));
  }
});

test('what asks for an answer that hides more is refused, and nothing is done', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const { key, keyid } = await a.keyWith('key.*');
  const wrapping = 'response wrapping is not supported: the answer would not be wrapped';
  const refused: readonly (readonly [header: string, values: readonly string[], message: string])[] = [
    ['X-Vault-Wrap-TTL', ['60', '5m', '1h', '-1', 'x', '0, 60', '00x'], wrapping],
    ['X-Vault-Wrap-Format', ['jwt'], wrapping],
    ['X-Vault-MFA', ['method:123456'], 'MFA methods are not supported: none would be asked'],
    ['X-Vault-Policy-Override', ['true', '1', 'x'], 'policies are not supported: none would be overridden'],
  ];
  const asked: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['PUT', `transit/encrypt/${name}`, { plaintext: '' }],
    ['PUT', `transit/datakey/plaintext/${name}`],
    ['PUT', `transit/keys/${freshName()}`],
    ['POST', `transit/keys/${name}/rotate`],
    ['GET', `transit/keys/${name}`],
    ['GET', 'transit/keys?list=true'],
    ['GET', 'auth/token/lookup-self'],
    ['PUT', 'auth/token/renew-self'],
    ['PUT', 'auth/approle/login', { role_id: keyid, secret_id: key }],
    ['PUT', 'sys/capabilities-self', { path: 'x' }],
    ['GET', 'sys/mounts'],
  ];
  for (const [header, values, message] of refused) {
    for (const value of values) {
      for (const [method, path, body] of asked) {
        const answer = await v1(a, method, path, body, { token: key, headers: { [header]: value } });
        isRefused(answer, 400, message);
      }
      const stranger = { token: null, headers: { [header]: value } };
      isRefused(await v1(a, 'GET', `transit/keys/${name}`, undefined, stranger), 403, denied);
    }
  }
  for (const headers of [
    { 'X-Vault-Wrap-TTL': '0' },
    { 'X-Vault-Wrap-TTL': '' },
    { 'X-Vault-Policy-Override': 'false' },
  ]) {
    const { status } = await v1(a, 'GET', `transit/keys/${name}`, undefined, { token: key, headers });
    assert.equal(status, 200, JSON.stringify(headers));
  }
  const { latest_version: latest } = (await v1(a, 'GET', `transit/keys/${name}`)).body.data;
  assert.equal(latest, 1, 'nothing was rotated');
});

test('a login to a tenant that there is not is answered as a wrong one, in each way to name it', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['a.test'] },
      { name: 'blue', hosts: ['blue.test'] },
    ],
  });
  const ways: Readonly<Record<string, (name: string) => { path: string; headers?: Record<string, string> }>> = {
    namespace: (name) => ({ path: 'auth/approle/login', headers: { 'X-Vault-Namespace': name } }),
    path: (name) => ({ path: `${name}/auth/approle/login`, headers: { Host: 'a.test' } }),
    host: (name) => ({ path: 'auth/approle/login', headers: { Host: `${name}.test` } }),
  };
  const bodies: readonly (string | object)[] = [
    { role_id: 'apik_x', secret_id: 'kms_x' },
    {},
    { role_id: 7, secret_id: [] },
    'no JSON',
    '[]',
    '',
    'null',
    `"${'x'.repeat(20_000)}"`,
  ];
  for (const [way, ask] of Object.entries(ways)) {
    for (const [n, body] of bodies.entries()) {
      const answers = [];
      for (const name of ['blue', 'nobody', 'x'.repeat(60)]) {
        const { path, headers = {} } = ask(name);
        const sent = { token: null, headers, from: `198.51.100.${n}`, ...(typeof body === 'string' && { raw: body }) };
        const { status, text } = await v1(a, 'PUT', path, typeof body === 'string' ? undefined : body, sent);
        assert.ok(status === 400 || status === 413, text);
        answers.push([status, text]);
      }
      assert.deepEqual(answers[1], answers[0], way);
      assert.deepEqual(answers[2], answers[0], way);
    }
    // Attempts for a missing name are slowed just like those for others.
    for (const name of ['blue', 'nobody']) {
      const { path, headers = {} } = ask(name);
      const from = `203.0.113.${Object.keys(ways).indexOf(way)}`;
      const login = { role_id: `apik_${way}`, secret_id: 'kms_x' };
      const statuses = [];
      for (let n = 0; n < 7; n++)
        statuses.push((await v1(a, 'PUT', path, login, { token: null, headers, from })).status);
      assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429, 429], `${way} ${name}`);
      a.advance(3_600_000);
    }
  }
  // Everything else is denied alike, too.
  for (const path of [
    'transit/keys/x',
    'auth/token/lookup-self',
    'auth/nothing',
    'transit/keys?list=true',
    'x',
    'sys/mounts',
  ]) {
    for (const name of ['blue', 'nobody']) {
      for (const token of [null, 'kms_wrong']) {
        const at = await v1(a, 'GET', path, undefined, { token, headers: { 'X-Vault-Namespace': name } });
        isRefused(at, 403, denied);
      }
    }
  }
});

test('sys tells what is there, and what a token may do with it', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const signer = await ring(a, { type: 'ed25519' });
  const { key } = await a.keyWith(`key.${name}.encrypt`, `key.${name}.read`, 'key.list', `key.${signer}.*`);
  const get = async (path: string) => (await v1(a, 'GET', path, undefined, { token: key })).body.data;
  const mounts = await get('sys/mounts');
  assert.deepEqual(
    [Object.keys(mounts), mounts['transit/'].type, mounts['transit/'].options],
    [['secret/', 'transit/'], 'transit', null],
  );
  for (const word of ['backup', 'restore', 'convergent']) {
    assert.match(mounts['transit/'].description, new RegExp(`no .*\\b${word}\\b`));
  }
  assert.deepEqual(Object.keys(await get('sys/auth')), ['approle/', 'token/']);
  const all = await get('sys/internal/ui/mounts');
  assert.deepEqual(
    [Object.keys(all.secret), Object.keys(all.auth)],
    [
      ['secret/', 'transit/'],
      ['approle/', 'token/'],
    ],
  );
  assert.deepEqual((await get('sys/internal/ui/mounts/any/keys/x')).path, 'any/');
  const paths: Readonly<Record<string, readonly string[]>> = {
    [`transit/encrypt/${name}`]: ['create', 'update'],
    [`a/b/encrypt/${name}`]: ['create', 'update'],
    [`transit/decrypt/${name}`]: ['deny'],
    [`transit/keys/${name}`]: ['read'],
    [`transit/keys/${signer}`]: ['delete', 'read'],
    [`transit/keys/${signer}/config`]: ['create', 'update'],
    'transit/keys': ['list'],
    'transit/keys/': ['list'],
    [`transit/sign/${signer}/sha2-256`]: ['create', 'update'],
    ...Object.fromEntries(
      ['export', 'backup', 'restore'].flatMap((what) =>
        [`transit/${what}`, `transit/${what}/${signer}`, `transit/keys/${signer}/${what}`].map((path) => [
          path,
          ['deny'],
        ]),
      ),
    ),
    [`transit/keys/${signer}/trim`]: ['create', 'update'],
    [`transit/keys/${signer}/import`]: ['create', 'update'],
    [`transit/keys/${name}/import`]: ['deny'],
    [`transit/hmac/${signer}`]: ['create', 'update'],
    [`transit/hmac/${name}/sha2-256`]: ['deny'],
    [`transit/export/signing-key/${signer}`]: ['read'],
    [`transit/export/signing-key/${name}`]: ['deny'],
    [`transit/export/public-key/${name}`]: ['read'],
    'transit/random': ['create', 'update'],
    'transit/random/seal/8': ['create', 'update'],
    'transit/hash/sha3-256': ['create', 'update'],
    'transit/wrapping_key': ['read'],
    'transit/cache-config': ['create', 'read', 'update'],
    // A mount of two parts, too, with keys to list.
    'transit/config/keys': ['create', 'list', 'read', 'update'],
    'auth/token/lookup-self': ['create', 'read', 'update'],
    'auth/token/create': ['deny'],
    'sys/mounts': ['read'],
    'sys/policies': ['deny'],
    'sys/mounts/transit': ['read'],
    '': ['deny'],
    __proto__x: ['deny'],
    [`${'/a'.repeat(200)}/encrypt/${name}`]: ['create', 'update'],
  };
  const ask = (body: object, token = key) => v1(a, 'PUT', 'sys/capabilities-self', body, { token });
  const told = await ask({ paths: Object.keys(paths) });
  assert.deepEqual(told.body.data, paths);
  const [record] = await a.activity();
  assert.deepEqual([record?.action, record?.validAction, record?.status], ['none', true, 200]);
  for (const [path, expected] of Object.entries(paths)) {
    assert.deepEqual((await ask({ path })).body.data, { [path]: expected, capabilities: expected });
  }
  // The reported capabilities hold.
  for (const [path, [first]] of Object.entries(paths)) {
    const isWrite = first === 'create';
    const { status } = await v1(
      a,
      isWrite ? 'PUT' : 'GET',
      `${path}${first === 'list' ? '?list=true' : ''}`,
      isWrite ? {} : undefined,
      {
        token: key,
      },
    );
    if (first !== 'deny') assert.notEqual(status, 403, path);
  }
  for (const body of [
    {},
    { paths: [] },
    { paths: [7] },
    { paths: Array(101).fill('x') },
    { path: 'x'.repeat(513) },
    { paths: {} },
  ]) {
    assert.equal((await ask(body)).status, 400, JSON.stringify(body).slice(0, 50));
  }
  for (const [method, path] of [
    ['GET', 'sys/mounts'],
    ['GET', 'sys/auth'],
    ['GET', 'sys/internal/ui/mounts'],
    ['POST', 'sys/capabilities-self'],
  ] as const) {
    for (const token of [null, 'kms_wrong']) isRefused(await v1(a, method, path, undefined, { token }), 403, denied);
  }
});

test('each item of a batch is done and recorded for itself', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const before = (await a.activity()).length;
  const batch = [{ plaintext: 'YQ==', reference: 'one' }, { plaintext: '###' }, { plaintext: null }, { plaintext: '' }];
  const got = await v1(a, 'POST', `transit/encrypt/${name}`, { batch_input: batch, plaintext: null });
  assert.equal(got.status, 400);
  const [one, two, three, four] = got.body.data.batch_results;
  assert.equal(one.reference, 'one');
  assert.deepEqual(two, { error: 'illegal base64 data at input byte 0', reference: '' });
  assert.deepEqual(three, { error: 'missing plaintext to encrypt', reference: '' });
  const records = (await a.activity()).slice(0, -before);
  assert.deepEqual(
    records.map(({ action, ringname, status, validAction }) => [action, ringname, status, validAction]).reverse(),
    [200, 400, 400, 200].map((status) => ['key.encrypt', name, status, true]),
  );
  assert.equal(new Set(records.map(({ id }) => id)).size, 4);
  const back = await v1(a, 'POST', `transit/decrypt/${name}`, { batch_input: [one, four] });
  assert.equal(back.status, 200);
  assert.deepEqual(back.body.data.batch_results, [
    { plaintext: 'YQ==', reference: 'one' },
    { plaintext: '', reference: '' },
  ]);
  const partial = { batch_input: batch, partial_failure_response_code: 207 };
  assert.equal((await v1(a, 'POST', `transit/encrypt/${name}`, partial)).status, 207);
  // Both with and without a query. Statuses whose answers have no body would lose the results.
  for (const code of [204, 205, 304, 199, 500]) {
    for (const query of ['', '?x=1']) {
      const asked = { ...partial, partial_failure_response_code: code };
      const kept = await v1(a, 'POST', `transit/encrypt/${name}${query}`, asked);
      assert.deepEqual([kept.status, kept.body.data.batch_results.length], [400, 4], `${code}`);
    }
  }
  const full = { batch_input: Array.from({ length: 1000 }, () => ({ plaintext: 'YQ==' })) };
  assert.equal((await v1(a, 'POST', `transit/encrypt/${name}`, full)).status, 200);
  const over = { batch_input: [...full.batch_input, { plaintext: 'YQ==' }] };
  const { status, body } = await v1(a, 'POST', `transit/encrypt/${name}`, over);
  assert.equal(status, 400);
  assert.match(body.errors[0], /at most 1000/);
});

test('the version of the key stands in the record, and finds it', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const signer = await ring(a, { type: 'ed25519' });
  const first = await encrypted(a, name);
  await v1(a, 'POST', `transit/keys/${name}/rotate`);
  await encrypted(a, name);
  await encrypted(a, name, { key_version: 1 });
  const batch = { batch_input: [{ ciphertext: first }, { ciphertext: 'vault:v2:AAAA' }] };
  assert.equal((await v1(a, 'POST', `transit/decrypt/${name}`, batch)).status, 400);
  await v1(a, 'POST', `transit/rewrap/${name}`, { ciphertext: first });
  await v1(a, 'POST', `transit/datakey/plaintext/${name}`);
  const { signature } = (await v1(a, 'POST', `transit/sign/${signer}`, { input: 'YQ==' })).body.data;
  await v1(a, 'POST', `transit/verify/${signer}`, { input: 'YQ==', signature });
  const of = (records: Awaited<ReturnType<Appliance['activity']>>) =>
    records
      .filter(({ action }) => !/create|rotate/.test(action))
      .map(({ action, status, props }) => {
        const { dialect, ...other } = props as { dialect?: string };
        assert.equal(dialect, 'vault');
        return [action, status, other];
      });
  const asked = [
    ['key.encrypt', 200, { keyVersion: 1 }],
    ['key.encrypt', 200, { keyVersion: 2 }],
    ['key.encrypt', 200, { keyVersion: 1 }],
    ['key.decrypt', 200, { keyVersion: 1 }],
    ['key.decrypt', 400, {}],
    ['key.rewrap', 200, { keyVersion: 2, fromKeyVersion: 1 }],
    ['key.datakey', 200, { keyVersion: 2 }],
    ['key.sign', 200, { keyVersion: 1 }],
    ['key.verify', 200, { keyVersion: 1 }],
  ];
  assert.deepEqual(
    of(await a.activity())
      .reverse()
      .slice(-asked.length),
    asked,
  );
  const search = async (props: object) => {
    const { body } = await a.call('POST', '/auth/search/activity', { props, ring: name });
    return of(body.data).reverse();
  };
  const ofRing = asked.slice(0, -2);
  assert.deepEqual(
    await search({ keyVersion: 1 }),
    ofRing.filter(([, , props]) => props === undefined || Reflect.get(Object(props), 'keyVersion') === 1),
  );
  assert.deepEqual(await search({ fromKeyVersion: 1 }), [ofRing[5]]);
  assert.deepEqual(await search({ keyVersion: 3 }), []);
});

test('a version gives way before it made too many messages, and when it is old', async () => {
  const a = await testAppliance();
  const name = await ring(a, { auto_rotate_period: 3600 });
  assert.match(await encrypted(a, name), /^vault:v1:/);
  a.advance(3_600_000);
  assert.match(await encrypted(a, name), /^vault:v2:/);
  assert.match(await encrypted(a, name, { key_version: 1 }), /^vault:v1:/, 'asked for on purpose');
});

test('bodies come as clients send them', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  assert.equal((await v1(a, 'POST', `transit/keys/${freshName()}`, undefined, { headers: form })).status, 204);
  assert.equal((await v1(a, 'POST', `transit/keys/${name}/rotate`, undefined, { headers: form })).status, 204);
  const json = JSON.stringify({ plaintext: 'YQ==', unknown: { x: [1] }, context: null });
  for (const type of [form['Content-Type'], 'text/plain', 'application/json; charset=utf-8', 'application/json']) {
    const headers = { 'Content-Type': type };
    assert.equal((await v1(a, 'POST', `transit/encrypt/${name}`, undefined, { raw: json, headers })).status, 200);
  }
  assert.equal((await v1(a, 'PUT', `transit/keys/${freshName()}`, undefined, { raw: 'null' })).status, 204);
  for (const raw of ['notjson', '[1]', '"x"', '{', '\u0000', '[['.repeat(50_000)]) {
    isRefused(await v1(a, 'PUT', `transit/encrypt/${name}`, undefined, { raw }), 400, 'failed to decode JSON input');
  }
  const wrapped = 'YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh\nYWFh\r\n';
  const ciphertext = await encrypted(a, name, { plaintext: wrapped });
  const { plaintext } = (await v1(a, 'POST', `transit/decrypt/${name}`, { ciphertext })).body.data;
  assert.equal(plaintext, wrapped.replace(/\s/g, ''));
  const large = await v1(a, 'PUT', `transit/encrypt/${name}`, { plaintext: 'A'.repeat(1_100_000) });
  assert.equal(large.status, 413);
  assert.deepEqual(Object.keys(large.body), ['errors']);
});

const operations: readonly [flag: string, method: string, path: string, body?: object][] = [
  ['read', 'GET', 'keys/R'],
  ['rotate', 'POST', 'keys/R/rotate'],
  ['config', 'POST', 'keys/R/config', { min_encryption_version: 0 }],
  ['delete', 'DELETE', 'keys/R'],
  ['encrypt', 'PUT', 'encrypt/R', { plaintext: 'YQ==' }],
  ['decrypt', 'PUT', 'decrypt/R', { ciphertext: 'vault:v1:AAAA' }],
  ['rewrap', 'PUT', 'rewrap/R', { ciphertext: 'vault:v1:AAAA' }],
  ['datakey', 'PUT', 'datakey/plaintext/R'],
  ['datakey-wrapped', 'PUT', 'datakey/wrapped/R'],
  ['sign', 'PUT', 'sign/R', { input: 'YQ==' }],
  ['verify', 'PUT', 'verify/R', { input: 'YQ==', signature: 'vault:v1:AAAA' }],
  ['verify', 'PUT', 'verify/R/sha2-256', { input: 'YQ==', hmac: 'vault:v1:AAAA' }],
  ['mac', 'PUT', 'hmac/R', { input: 'YQ==' }],
  ['read', 'GET', 'export/public-key/R'],
  ['export', 'GET', 'export/encryption-key/R/latest'],
  ['import', 'PUT', 'keys/R/import_version', { ciphertext: 'AAAA' }],
  ['state', 'DELETE', 'keys/R/soft-delete'],
  ['state', 'PUT', 'keys/R/soft-delete-restore'],
  ['delete', 'PUT', 'keys/R/trim', { min_available_version: 1 }],
];

test('each operation needs its flag of the ring, and no more', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const others = [...new Set(operations.map(([flag]) => flag))];
  const last = async () => (await a.activity())[0];
  for (const [flag, method, path, body] of operations) {
    const place = `any/mount/${path.replace('R', name)}`;
    const own = await a.keyWith(`key.${name}.${flag}`);
    const rest = await a.keyWith(
      // Both together are enough to rewrap.
      ...others
        .filter((each) => each !== flag && !(flag === 'rewrap' && each === 'encrypt'))
        .map((each) => `key.${name}.${each}`),
      'key.elsewhere.*',
      'keyring.*',
      'asym.*',
      'key.create',
      'key.list',
    );
    isRefused(await v1(a, method, place, body, { token: rest.key }), 403, 'permission denied');
    const denied = await last();
    const action = `key.${flag}`;
    assert.deepEqual([denied?.keyid, denied?.action, denied?.ringname], [rest.keyid, action, name]);
    assert.deepEqual([denied?.validAction, denied?.status], [false, 403]);
    const { status } = await v1(a, method, place, body, { token: own.key });
    assert.ok([200, 204, 400].includes(status), `${place} ${status}`);
    const granted = await last();
    assert.deepEqual([granted?.keyid, granted?.action, granted?.ringname], [own.keyid, action, name]);
    assert.deepEqual([granted?.validAction, granted?.address], [true, '192.0.2.1']);
    isRefused(await v1(a, method, place.replace(name, 'unknown'), body, { token: own.key }), 403, 'permission denied');
  }
  const create = await a.keyWith('key.create');
  assert.equal((await v1(a, 'PUT', `transit/keys/${freshName()}`, {}, { token: create.key })).status, 204);
  isRefused(await v1(a, 'GET', 'transit/keys?list=true', undefined, { token: create.key }), 403, 'permission denied');
  const list = await a.keyWith('key.list');
  assert.equal((await v1(a, 'GET', 'transit/keys?list=true', undefined, { token: list.key })).status, 200);
  isRefused(await v1(a, 'PUT', 'transit/keys/new', {}, { token: list.key }), 403, 'permission denied');
});

test('without a known token everything is 403, and nothing is recorded; a disabled one is recorded', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['*'] },
      { name: 'blue', hosts: ['blue.test'] },
    ],
  });
  const name = await ring(a);
  const foreign = a.tenants[1]?.root.key ?? '';
  const before = (await a.activity()).length;
  const paths = [...operations.map(([, method, path, body]) => [method, `transit/${path}`, body] as const)];
  const all = [
    ...paths,
    ['GET', 'transit/keys?list=true', undefined],
    ['GET', 'auth/token/lookup-self', undefined],
    ['PUT', 'auth/token/renew-self', {}],
    ['GET', 'transit/zzz', undefined],
    ['GET', 'transit/export/x/y', undefined],
    ['GET', 'nomount', undefined],
  ] as const;
  for (const [method, path, body] of all) {
    for (const token of [null, '', 'x', 'kms_', 'hvs.CAESIJ', foreign, `${a.root.key}x`]) {
      isRefused(await v1(a, method, path.replace('R', name), body, { token }), 403, 'permission denied');
    }
  }
  assert.equal((await a.activity()).length, before);
  const { key, keyid } = await a.keyWith('*');
  await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active: false });
  for (const [method, path, body] of all) {
    isRefused(await v1(a, method, path.replace('R', name), body, { token: key }), 403, 'permission denied');
    const [last] = await a.activity();
    assert.deepEqual([last?.keyid, last?.validAction], [keyid, false], path);
  }
});

test('tokens look themselves up; AppRole answers the key as the token', async () => {
  const a = await testAppliance();
  const { data } = (await v1(a, 'GET', 'auth/token/lookup-self')).body;
  assert.equal(data.id, a.root.key);
  assert.deepEqual([data.ttl, data.creation_ttl, data.expire_time], [0, 0, null]);
  const bearer = { token: null, headers: { Authorization: `Bearer ${a.root.key}` } };
  assert.equal((await v1(a, 'GET', 'auth/token/lookup-self', undefined, bearer)).status, 200);
  assert.equal((await v1(a, 'PUT', 'auth/token/lookup-self')).body.data.id, a.root.key);
  const { key, keyid } = await a.keyWith('key.*');
  const login = (body: object) => v1(a, 'PUT', 'auth/approle/login', body, { token: null });
  const { auth } = (await login({ role_id: keyid, secret_id: key })).body;
  assert.deepEqual([auth.client_token, auth.lease_duration, auth.renewable], [key, 0, false]);
  const wrong = 'invalid role or secret ID';
  for (const body of [{ role_id: a.root.keyid, secret_id: key }, { role_id: keyid }, { secret_id: key }, {}]) {
    isRefused(await login(body), 400, wrong);
  }
  const expiresAt = a.world.now() + 7_200_000;
  await a.call('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', expiresAt });
  const soon = (await v1(a, 'GET', 'auth/token/lookup-self', undefined, { token: key })).body.data;
  assert.equal(soon.ttl, 7200);
  const renewed = await v1(a, 'PUT', 'auth/token/renew-self', { increment: 0 }, { token: key });
  assert.deepEqual([renewed.status, renewed.body.auth.lease_duration], [200, 7200]);
  a.advance(7_200_000);
  isRefused(await login({ role_id: keyid, secret_id: key }), 400, wrong);
});

/** Logs in by AppRole from an address, and returns status, error and the time to wait. */
async function roleLogin(a: Appliance, role: string, secret: string, from = '192.0.2.1') {
  const asked = { role_id: role, secret_id: secret };
  const { status, body, headers } = await v1(a, 'PUT', 'auth/approle/login', asked, { token: null, from });
  return [status, body.errors?.[0], headers.get('retry-after')] as const;
}

const noRole = 'invalid role or secret ID';
const wrongRole = [400, noRole, null];
const mustWait = (seconds: number) => [429, `too many failed logins; try again in ${seconds} s`, String(seconds)];

test('AppRole logins are slowed as others are; the key as a token never waits for them', async () => {
  const a = await testAppliance();
  const { key, keyid } = await a.keyWith('key.*');
  const other = await a.keyWith('key.*');
  const before = (await a.activity()).length;
  for (let n = 0; n < 5; n++) assert.deepEqual(await roleLogin(a, keyid, `kms_wrong${n}`), wrongRole);
  for (const secret of ['kms_wrong', key]) assert.deepEqual(await roleLogin(a, keyid, secret), mustWait(1));
  const after = await a.activity();
  assert.equal(after.length - before, 5, 'what must wait is not recorded');
  for (const { keyid: of, action, validAction, status, address } of after.slice(0, 5)) {
    const failed = [keyid, 'session.create', false, 400, '192.0.2.1'];
    assert.deepEqual([of, action, validAction, status, address], failed);
  }
  await roleLogin(a, 'apik_nobody', 'kms_wrong', '192.0.2.7');
  assert.equal((await a.activity()).length, after.length, 'nor what is no key of the tenant');
  assert.equal((await roleLogin(a, keyid, other.key, '192.0.2.7'))[0], 400);
  const [mixed] = await a.activity();
  assert.deepEqual([mixed?.keyid, mixed?.validAction], [keyid, false], "another key's secret");
  const name = await ring(a);
  for (const path of [`transit/encrypt/${name}`, 'auth/token/lookup-self']) {
    const method = path.startsWith('auth') ? 'GET' : 'PUT';
    assert.equal((await v1(a, method, path, { plaintext: '' }, { token: key })).status, 200);
  }
  assert.equal((await roleLogin(a, other.keyid, other.key))[0], 200, 'another role from there');
  assert.equal((await roleLogin(a, keyid, key, '192.0.2.2'))[0], 200, 'the role from elsewhere');
  a.advance(1_000);
  assert.equal((await roleLogin(a, keyid, key))[0], 200);
  assert.deepEqual(await roleLogin(a, keyid, 'kms_wrong'), wrongRole, 'a success ends the count');

  // A flood: many addresses for one role, and many roles from one address.
  for (let n = 0; n < 50; n++) await roleLogin(a, keyid, 'kms_wrong', `198.51.100.${n}`);
  assert.deepEqual(await roleLogin(a, keyid, key, '203.0.113.1'), mustWait(1));
  for (let n = 0; n < 50; n++) await roleLogin(a, `apik_${n}`, 'kms_wrong', '203.0.113.2');
  const flooded = { token: null, from: '203.0.113.2', raw: 'no JSON' };
  const refused = await v1(a, 'POST', 'auth/approle/login', {}, flooded);
  assert.equal(refused.status, 429, 'before its body is read');
  assert.equal(
    (await v1(a, 'GET', 'auth/token/lookup-self', undefined, { token: key, from: '203.0.113.2' })).status,
    200,
  );
  assert.equal((await roleLogin(a, other.keyid, other.key, '203.0.113.3'))[0], 200);
  const env = { remoteAddress: '203.0.113.2' };
  const person = await a.call('POST', '/auth/basic/login', { username: 'ada', password: 'x' }, { key: null, env });
  assert.equal(person.status, 400, 'people at the address may still log in');
});

test('no number of AppRole logins at once gets past the count; what cannot be a login is not counted', async () => {
  const a = await testAppliance();
  const { keyid, key } = await a.keyWith('key.*');
  const tries = Array.from({ length: 40 }, (_, n) => roleLogin(a, keyid, `kms_${n}`));
  const statuses = (await Promise.all(tries)).map(([status]) => status);
  assert.equal(statuses.filter((status) => status === 400).length, 5);
  assert.equal(statuses.filter((status) => status === 429).length, 35);
  for (let n = 0; n < 60; n++) {
    const body = [{ role_id: keyid }, { secret_id: key }, { role_id: 1, secret_id: [] }][n % 3] ?? {};
    isRefused(await v1(a, 'PUT', 'auth/approle/login', body, { token: null, from: '192.0.2.9' }), 400, noRole);
  }
  assert.equal((await roleLogin(a, keyid, key, '192.0.2.9'))[0], 200);
  const rights = Array.from({ length: 40 }, () => roleLogin(a, keyid, key, '192.0.2.9'));
  assert.ok(
    (await Promise.all(rights)).every(([status]) => status === 200),
    'those that are right, all at once',
  );
});

test('AppRole logins tell neither which tenants there are nor which hosts are one of theirs', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: [] },
      { name: 'alpha', hosts: ['alpha.test', 'other.test'] },
    ],
  });
  const statusFor = async (headers: Record<string, string>, role = 'r', secret = 'kms_wrong') => {
    const asked = { token: null, from: '192.0.2.1', headers };
    return (await v1(a, 'PUT', 'auth/approle/login', { role_id: role, secret_id: secret }, asked)).status;
  };
  for (const name of ['alpha', 'beta']) {
    const statuses = [];
    for (let n = 0; n < 6; n++) statuses.push(await statusFor({ 'X-Vault-Namespace': name }));
    assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429], name);
  }
  for (const host of ['alpha.test', 'other.test', 'beta.test']) {
    const statuses = [];
    for (let n = 0; n < 6; n++) statuses.push(await statusFor({ Host: host }));
    assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429], host);
  }

  // Each name of a tenant allows no tries of its own: while one waits, the others answer like a wrong secret.
  a.advance(3_600_000);
  const root = a.tenants[1]?.root ?? assert.fail();
  for (let n = 0; n < 5; n++) assert.equal(await statusFor({ Host: 'alpha.test' }, root.keyid), 400);
  assert.equal(await statusFor({ Host: 'other.test' }, root.keyid, root.key), 400);
  a.advance(60_000);
  assert.equal(await statusFor({ Host: 'other.test' }, root.keyid, root.key), 200);
});

test('on one of three nodes the first wrong AppRole login counts for all of them', async () => {
  const a = await testAppliance({ people: { nodes: () => 3 } });
  const { keyid, key } = await a.keyWith('key.*');
  assert.deepEqual(await roleLogin(a, keyid, 'kms_wrong'), wrongRole);
  assert.deepEqual(await roleLogin(a, keyid, key), mustWait(1));
  a.advance(1_000);
  assert.equal((await roleLogin(a, keyid, key))[0], 200);
});

test('tokens that nobody holds wait together, and whoever holds one before them', async () => {
  const limits = { atOnce: 1, waiting: 8, ofOneTenant: 8, ofOneCaller: 4, patience: 10_000 };
  const a = await testAppliance({ fairLimits: limits });
  const look = (token: string) => v1(a, 'GET', 'auth/token/lookup-self', undefined, { token });
  assert.equal((await look(a.root.key)).status, 200);
  const order: number[] = [];
  const asked = Array.from({ length: 12 }, (_, n) => look(n === 11 ? a.root.key : `kms_wrong${n}`));
  for (const each of asked) void each.then(({ status }) => order.push(status));
  const answers = await Promise.all(asked);
  const [slowed] = answers.filter(({ status }) => status === 503);
  assert.equal(slowed?.headers.get('retry-after'), '1');
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses, [...Array(5).fill(403), ...Array(6).fill(503), 200]);
  assert.ok(order.indexOf(200) < order.lastIndexOf(403), order.join());
});

test('a tenant is found by its namespace, by the path, and by the host', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['*'] },
      { name: 'blue', hosts: ['blue.test'] },
    ],
  });
  const token = a.tenants[1]?.root.key ?? '';
  const ways: [string, Sent][] = [
    ['transit', { token, headers: { 'X-Vault-Namespace': 'blue' } }],
    ['transit', { token, headers: { 'X-Vault-Namespace': '/Blue/' } }],
    ['blue/transit', { token }],
    ['transit', { token, headers: { Host: 'blue.test:8200' } }],
  ];
  for (const [mount, sent] of ways) {
    const name = freshName();
    assert.equal((await v1(a, 'PUT', `${mount}/keys/${name}`, {}, sent)).status, 204);
    assert.equal((await v1(a, 'GET', `${mount}/keys/${name}`, undefined, sent)).status, 200);
    isRefused(await v1(a, 'GET', `transit/keys/${name}`), 404);
    const { keys } = (await v1(a, 'GET', `${mount}/keys?list=true`, undefined, sent)).body.data;
    assert.ok(keys.includes(name), mount);
    isRefused(await v1(a, 'GET', `${mount}/keys?list=true`, undefined, { ...sent, token: a.root.key }), 403, denied);
  }
  const elsewhere = { token, headers: { 'X-Vault-Namespace': 'nobody' } };
  isRefused(await v1(a, 'GET', 'transit/keys/x', undefined, elsewhere), 403, 'permission denied');
  assert.equal((await v1(a, 'GET', 'blue/auth/token/lookup-self', undefined, { token })).status, 200);
});

test('health and the state of the seal need no token, and are not recorded', async () => {
  let sealed = false;
  const a = await testAppliance({ sealed: () => sealed });
  const before = (await a.activity()).length;
  const health = await v1(a, 'GET', 'sys/health', undefined, { token: null });
  assert.equal(health.status, 200);
  assert.deepEqual([health.body.initialized, health.body.sealed, health.body.standby], [true, false, false]);
  assert.equal((await v1(a, 'HEAD', 'sys/health', undefined, { token: null })).text, '');
  assert.match((await v1(a, 'GET', 'sys/seal-status', undefined, { token: null })).body.version, /^\d+\.\d+\.\d+/);
  assert.equal((await v1(a, 'GET', 'sys/leader', undefined, { token: null })).body.ha_enabled, false);
  assert.deepEqual((await v1(a, 'GET', 'sys/init', undefined, { token: null })).body, { initialized: true });
  sealed = true;
  assert.equal((await v1(a, 'GET', 'sys/health')).status, 503);
  assert.equal((await v1(a, 'GET', 'sys/health?sealedcode=299&standbycode=200')).status, 299);
  assert.equal((await v1(a, 'GET', 'sys/seal-status')).body.sealed, true);
  isRefused(await v1(a, 'PUT', 'transit/encrypt/x', { plaintext: '' }), 503, 'Vault is sealed');
  sealed = false;
  assert.equal((await a.activity()).length, before);
});

test('nothing is under any other path there, and nothing of this elsewhere', async () => {
  const a = await testAppliance();
  const at = (path: string) =>
    a.call('GET', path, undefined, { env: { surface: 'vault' } }).then(({ status, text }) => [status, text]);
  for (const path of ['/', '/ks/keyrings', '/healthz', '/console', '/v2/x', '/local/status']) {
    assert.deepEqual(await at(path), [404, '{"errors":["no handler for this path: all are under /v1/"]}']);
  }
  assert.equal((await a.call('GET', '/v1/sys/health')).status, 404);
});

test('rings of the two kinds do not mix: 400, saying why', async () => {
  const a = await testAppliance();
  const server = await ring(a);
  const client = freshName();
  const asym = freshName();
  const deletedServer = await ring(a);
  await a.call('PUT', `/managed-keys/${deletedServer}/config`, { deletionAllowed: true });
  const { id: serverId } = (await a.call('DELETE', `/managed-keys/${deletedServer}`)).body;
  await a.call('POST', '/ks/keyrings', { name: client });
  await a.call('POST', '/asym/keyrings', { name: asym });
  const deletedClient = (await a.call('POST', '/ks/keyrings', { name: freshName() })).body.ring;
  await a.call('DELETE', `/ks/keyrings/${deletedClient.name}`);
  for (const [, method, path, body] of operations) {
    for (const name of [client, asym]) {
      const refusal = await v1(a, method, `transit/${path.replace('R', name)}`, body);
      assert.equal(refusal.status, 400, path);
      assert.match(refusal.body.errors[0], name === asym ? /custody client.*at \/asym$/ : /custody client.*at \/ks$/);
    }
  }
  const items = [{ plaintext: 'YQ==', ciphertext: 'vault:v1:AAAA' }];
  const signed = { input: 'YQ==', signature: 'vault:v1:AAAA' };
  const ours: readonly [string, string, object?][] = [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
    ['PUT', '/config', {}],
    ['POST', '/encrypt', { items }],
    ['POST', '/decrypt', { items }],
    ['POST', '/rewrap', { items }],
    ['POST', '/datakey', {}],
    ['POST', '/datakey-wrapped', {}],
    ['POST', '/sign', { input: 'YQ==' }],
    ['POST', '/verify', signed],
  ];
  const asked: (readonly [string, string, object?])[] = [['POST', `/managed-keys/${deletedClient.id}/restore`]];
  for (const [method, end, body = {}] of ours) {
    for (const name of [client, asym]) {
      const path = `/managed-keys/${name}${end}`;
      asked.push(method === 'GET' || method === 'DELETE' ? [method, path] : [method, path, body]);
    }
  }
  for (const [method, path, body] of asked) {
    const answer = await a.call(method, path, body);
    assert.equal(answer.status, 400, `${method} ${path} ${answer.text}`);
    assert.match(answer.body.message, /custody client/);
  }
  const { key: held } = (await a.call('GET', `/managed-keys/${server}`)).body;
  const theirs: readonly [string, string, object?][] = [
    ['POST', '/ks/encrypt', { ringname: server }],
    ['POST', '/ks/rotate', { ringname: server }],
    ['GET', `/ks/keyrings/${server}`],
    ['GET', `/ks/keyrings/${held.id}?id=true`],
    ['GET', `/ks/keyrings/${server}/keys`],
    ['GET', `/ks/keyrings/${held.id}/keys?id=true`],
    ['GET', `/ks/keyrings/${server}/keys/x`],
    ['GET', `/asym/keyrings/${server}/keys/x`],
    ['GET', `/asym/keyrings/${held.id}/keys/x?id=true`],
    ['DELETE', `/ks/keyrings/${server}`],
    ['POST', `/ks/keyrings/${serverId}/restore`],
    ['GET', `/ks/config?ringname=${server}`],
    ['PUT', '/ks/config', { ringname: server, config: {} }],
    ['POST', '/asym/rotate', { ringname: server }],
    ['GET', `/auth/search/keyring/${server}/apikey`],
  ];
  for (const [method, path, body] of theirs) {
    const answer = await a.call(method, path, body);
    assert.equal(answer.status, 400, `${method} ${path} ${answer.text}`);
    assert.match(answer.body.message, /custody server/);
  }
  // A caller without a flag for the name learns nothing.
  const stranger = await a.keyWith('keyring.elsewhere.*', 'asym.elsewhere.*', 'key.elsewhere.*');
  for (const [method, path, body] of [...asked, ...theirs]) {
    const { status, text } = await a.call(method, path, body, { key: stranger.key });
    assert.equal(status, 403, `${method} ${path}`);
    assert.doesNotMatch(text, /custody/);
  }
  assert.equal((await a.call('GET', '/ks/keyrings')).body.data.length, 1);
  assert.equal((await a.call('GET', '/managed-keys')).body.data.length, 1);
  assert.equal(held.custody, 'server');
  const custodyOf = new Map((await a.activity()).map(({ action, props }) => [action, props.custody]));
  assert.equal(custodyOf.get('key.create'), 'server');
  assert.equal(custodyOf.get('keyring.create'), 'client');
  assert.equal(custodyOf.get('asym.create'), 'client');
});

test('what was encrypted, plaintexts and tokens are in no record and no log', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const ciphertext = await encrypted(a, name);
  await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext });
  await v1(a, 'PUT', `transit/decrypt/${name}`, { ciphertext: `${ciphertext}x` });
  const { data } = (await v1(a, 'PUT', `transit/datakey/plaintext/${name}`)).body;
  await v1(a, 'GET', 'auth/token/lookup-self');
  const told = JSON.stringify(await a.activity()) + a.log.join('\n');
  for (const secret of ['aGVsbG8=', ciphertext, data.plaintext, data.ciphertext, a.root.key]) {
    assert.ok(!told.includes(secret));
  }
});

test('no request under /v1 makes it fail', async () => {
  const a = await testAppliance();
  const name = await ring(a);
  const signer = await ring(a, { type: 'ecdsa-p256' });
  const derived = await ring(a, { derived: true });
  const ciphertext = await encrypted(a, name);
  const { signature } = (await v1(a, 'PUT', `t/sign/${signer}`, { input: 'YQ==' })).body.data;
  const values = fc.oneof(
    fc.constantFrom(ciphertext, signature, 'YQ==', '', '0', 'true', 'sha2-256', 'ed25519', '24h', 'vault:v1:', null),
    fc.constantFrom(1, 0, -1, 256, 1e308, 1.5, true),
    fc.jsonValue({ maxDepth: 2 }),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  const fields = fc.constantFrom(
    ...['plaintext', 'ciphertext', 'context', 'associated_data', 'key_version', 'batch_input', 'bits', 'type'],
    ...['derived', 'input', 'signature', 'prehashed', 'hash_algorithm', 'min_decryption_version', 'auto_rotate_period'],
    ...[
      'min_encryption_version',
      'deletion_allowed',
      'role_id',
      'secret_id',
      'partial_failure_response_code',
      '__proto__',
    ],
  );
  const body = fc.dictionary(fields, values);
  const segment = fc.oneof(
    fc.constantFrom(name, signer, derived, 'transit', 'keys', 'encrypt', 'decrypt', 'rewrap', 'datakey', 'plaintext'),
    fc.constantFrom('wrapped', 'sign', 'verify', 'rotate', 'config', 'sha2-256', 'auth', 'token', 'lookup-self', 'sys'),
    fc.constantFrom('approle', 'login', 'health', 'seal-status', 'export', 'backup', '..', '%', '%00', '*', ''),
    fc.string({ maxLength: 6 }),
  );
  const known = fc
    .constantFrom(...operations)
    .chain(([, method, path]) =>
      fc.constantFrom(name, signer, derived).map((r) => [method, `t/${path.replace('R', r)}`]),
    );
  const any = fc.tuple(
    fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
    fc.array(segment, { maxLength: 6 }).map((parts) => parts.join('/')),
  );
  const statuses = new Map<number, number>();
  const sent = fc.oneof(
    body.map((each) => JSON.stringify(each)),
    fc.record({ batch_input: fc.array(body, { maxLength: 3 }) }).map((each) => JSON.stringify(each)),
    fc.string({ maxLength: 20 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(known, any), sent, async ([method = '', path = ''], raw) => {
      const hasBody = !['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method);
      const url = path.replace(/[?#\\]/g, '_');
      const got = await v1(a, method, url, undefined, hasBody ? { raw } : {});
      assert.ok(got.status < 500, `${method} ${url} ${raw}: ${got.text}\n${a.log.at(-1)}`);
      if (got.status >= 400 && got.text !== '') {
        assert.ok(Array.isArray(got.body.errors ?? got.body.data?.batch_results), got.text);
      }
      statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
    }),
    { numRuns: Number(process.env.KMS_FUZZ_RUNS ?? 2000), seed: Number(process.env.KMS_FUZZ_SEED ?? 20260102) },
  );
  for (const status of [200, 400, 404]) assert.ok((statuses.get(status) ?? 0) > 20, `too few of ${status}`);
});

test('a tenant that keeps to client custody makes no such ring', async () => {
  const a = await testAppliance({ tenants: [{ name: 'default', hosts: ['*'], custody: 'client' }] });
  const { status, body } = await v1(a, 'PUT', 'transit/keys/x', {});
  assert.equal(status, 403);
  assert.match(body.errors[0], /custody client/);
  const key: TestKey = await a.keyWith('key.*');
  assert.equal((await a.call('POST', '/managed-keys', { name: 'x' }, { key: key.key })).status, 403);
});
