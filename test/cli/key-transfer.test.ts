// Import and export of managed keys from the command line: the forms of keys, the ways they take, and where they are
// never shown.
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, privateDecrypt } from 'node:crypto';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { unwrapKwp } from '../../src/crypto/managed/key-wrap.ts';
import { startRsa } from '../../src/platform/native-rsa.ts';
import { type Desk, desk } from './kms.ts';
import { servedDesk } from './served.ts';

const secret = Buffer.from('0123456789abcdef0123456789abcdef');

async function write(d: Desk, name: string, bytes: string | Uint8Array): Promise<void> {
  await writeFile(d.path(name), bytes, { mode: 0o600 });
}

async function run(d: Desk, line: string): Promise<string> {
  const { code, stdout, stderr } = await d.kms(line);
  assert.equal(code, 0, `${line}: ${stderr}`);
  return stdout;
}

test('a key comes in as its bytes, DER or PEM, and goes out as it came', async () => {
  await using d = await desk();
  await d.kms('init');
  await write(d, 'key.bin', secret);
  assert.match(await run(d, 'key import unseal --from key.bin --type aes256-gcm --exportable'), /^origin +imported$/m);
  await run(d, 'key export unseal --plaintext -o out.bin');
  assert.deepEqual(await readFile(d.path('out.bin')), secret);
  assert.equal((await stat(d.path('out.bin'))).mode & 0o777, 0o600);
  assert.deepEqual((await d.kms('key export unseal --plaintext')).bytes, secret);

  // A seed that begins like DER does.
  const seed = Buffer.from(secret);
  seed.set([0x30, 0x1e]);
  await write(d, 'seed', seed);
  await run(d, 'key import seed --from seed --type ed25519 --exportable');
  const pem = (await d.kms('key export seed --plaintext')).stdout;
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  assert.deepEqual(Buffer.from(String(createPrivateKey(pem).export({ format: 'jwk' }).d), 'base64url'), seed);

  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  await write(d, 'ec.pem', privateKey.export({ format: 'pem', type: 'sec1' }));
  await write(d, 'ec.der', privateKey.export({ format: 'der', type: 'pkcs8' }));
  for (const form of ['pem', 'der']) {
    await run(d, `key import ${form} --from ec.${form} --type ecdsa-p384 --exportable`);
    const out = (await d.kms(`key export ${form} --plaintext`)).stdout;
    assert.equal(out, privateKey.export({ format: 'pem', type: 'pkcs8' }));
  }
  await write(d, 'ec.pub', publicKey.export({ format: 'pem', type: 'spki' }));
  await write(d, 'ec.pub.der', publicKey.export({ format: 'der', type: 'spki' }));
  await run(d, 'key import partner --public-key ec.pub --type ecdsa-p384 --use verify');
  await run(d, 'key import partner --public-key ec.pub.der --new-version');
  const sign = await run(d, 'key sign pem ec.pub');
  const verified = await d.kms(['key', 'verify', 'partner', 'ec.pub', '--signature', sign.replace('v1', 'v2')]);
  assert.equal(verified.stdout, 'valid\n', verified.stderr);
});

test('a new version keeps to what the key has, and a name that is taken is no new key', async () => {
  await using d = await desk();
  await d.kms('init');
  await write(d, 'key.bin', secret);
  await run(d, 'key import unseal --from key.bin --type aes256-gcm --allow-plaintext-format vault');
  assert.match(await run(d, 'key import unseal --from key.bin --new-version'), /^latest version +2$/m);
  for (const [line, code, said] of [
    ['--from key.bin --type aes256-gcm', 1, /^kms: there is already a managed key unseal; .* add --new-version\n$/],
    ['--from key.bin', 2, /^kms: --type is missing; /],
    ['--type aes256-gcm', 2, /^kms: expected --from, or --public-key; /],
    ['--from key.bin --public-key key.bin --type ed25519', 2, /^kms: --from and --public-key exclude each other; /],
    ['--from key.bin --new-version --exportable', 2, /^kms: --exportable is for a new key: /],
    ['--from key.bin --new-version --type ed25519', 1, /expected aes256-gcm, the type of the key/],
  ] as const) {
    const answer = await d.kms(`key import unseal ${line}`);
    assert.equal(answer.code, code, answer.stderr);
    assert.match(answer.stderr, said);
  }
  assert.equal((await d.kms('key import other --from key.bin --new-version')).code, 1);
  await chmod(d.path('key.bin'), 0o644);
  const exposed = await d.kms('key import other --from key.bin --type aes256-gcm');
  assert.equal(exposed.code, 1);
  assert.match(exposed.stderr, /chmod 0600/);
  assert.match(
    (await d.kms('key import other --from gone --type aes256-gcm')).stderr,
    /^kms: cannot read the key from /,
  );
});

test('export: wrapped to a key of RSA, never on a terminal, and only where the key may leave', async () => {
  await using d = await desk();
  await d.kms('init');
  await write(d, 'key.bin', secret);
  await run(d, 'key import unseal --from key.bin --type aes256-gcm --exportable');
  await run(d, 'key rotate unseal');
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await write(d, 'rsa.pub', publicKey.export({ format: 'pem', type: 'spki' }));
  const said = await d.kms('key export unseal --version 1 --to-public-key rsa.pub -o wrapped');
  assert.deepEqual([said.code, said.stdout], [0, '']);
  assert.equal(
    said.stderr,
    `kms: ${d.path('wrapped')} has version 1 of unseal, wrapped with RSA-OAEP-SHA256 and AES-KWP\n`,
  );
  // A short key, too, opens with CKM_RSA_AES_KEY_WRAP.
  const unwrapped = (file: Uint8Array) => {
    const kek = privateDecrypt({ key: privateKey, oaepHash: 'sha256' }, file.subarray(0, 256));
    return unwrapKwp(new Uint8Array(kek), new Uint8Array(file.subarray(256)));
  };
  assert.deepEqual(unwrapped(await readFile(d.path('wrapped'))), new Uint8Array(secret));
  const long = new Uint8Array(300).fill(5);
  await write(d, 'long.bin', long);
  await run(d, 'key import long --from long.bin --type secret');
  const both = await d.kms('key export long --to-public-key rsa.pub -o wrapped.long');
  assert.match(both.stderr, /wrapped with RSA-OAEP-SHA256 and AES-KWP\n$/);
  assert.deepEqual(unwrapped(await readFile(d.path('wrapped.long'))), long);

  const json = await d.json('key export unseal --version 1 --plaintext -o out --json');
  assert.deepEqual(json, { version: 1, format: 'raw' });
  const shown = secret.toString('base64');
  for (const [line, options, problem] of [
    ['--plaintext', { tty: { stdout: true } }, /^kms: a key does not belong on a terminal: /],
    ['--plaintext -o -', { tty: { stdout: true } }, /^kms: a key does not belong on a terminal: /],
    ['--to-public-key rsa.pub', { tty: { stdout: true } }, /^kms: a key does not belong on a terminal: /],
    ['--plaintext --json', {}, /^kms: --json needs -o FILE/],
    ['', {}, /^kms: expected --to-public-key FILE to wrap the key to, or --plaintext; /],
    ['--plaintext --to-public-key rsa.pub', {}, /^kms: --to-public-key and --plaintext exclude each other; /],
  ] as const) {
    const { code, stdout, stderr } = await d.kms(`key export unseal ${line}`.trim(), options);
    assert.deepEqual([code, stdout], [2, ''], line);
    assert.match(stderr, problem);
    assert.ok(!stderr.includes(shown) && !stderr.includes(String(secret)));
  }
  await run(d, 'key deactivate unseal --yes');
  const old = await d.kms('key export unseal --plaintext -o old');
  assert.match(old.stderr, /^kms: warning: the key is deactivated: /);
  await run(d, 'key create pair --type aes256-gcm --exportable');
  await run(d, 'key deactivate pair --version 1 --yes');
  const ofVersion = await d.json<{ warning?: string }>('key export pair --plaintext -o pair.bin --json');
  assert.match(ofVersion.warning ?? '', /^this version of the key is deactivated: /);
  await run(d, 'key config unseal --exportable false');
  const kept = await d.kms('key export unseal --plaintext -o other');
  assert.equal(kept.code, 1);
  const noOption = await d.kms('key export unseal');
  assert.equal(noOption.code, 1);
  assert.match(
    noOption.stderr,
    /^kms: the managed key unseal may not leave the appliance; only a key that was made or /,
  );
  await assert.rejects(stat(d.path('other')), 'nothing is left of what failed');
});

test('over the network a key is wrapped before it is sent', async () => {
  startRsa();
  await using d = await servedDesk();
  await write(d, 'key.bin', secret);
  const { args, env } = d.network();
  const sent: string[] = [];
  const { app } = d.appliance;
  const fetch = app.fetch.bind(app);
  app.fetch = async (request, options) => {
    sent.push(await request.clone().text());
    return fetch(request, options);
  };
  const line = ['key', 'import', 'unseal', '--from', 'key.bin', '--type', 'aes256-gcm', '--exportable'];
  const { code, stderr } = await d.kms([...line, ...args], { env });
  assert.equal(code, 0, stderr);
  assert.ok(sent.some((body) => body.includes('"wrapped"')));
  assert.ok(!sent.some((body) => body.includes('"plaintext"') || body.includes(secret.toString('base64'))));
  assert.deepEqual((await d.kms('key export unseal --plaintext')).bytes, secret);
  const here = [...line.map((word) => (word === 'unseal' ? 'here' : word))];
  assert.equal((await d.kms(here)).code, 0);
  assert.ok(sent.some((body) => body.includes('"plaintext"')));
});
