// `keyring upgrade --rewrap`: the earlier keys of a keyring wrapped to its new pair, so that this alone opens them.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { generateRingKey, privateKeyPem, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { type ServedDesk, servedDesk } from './served.ts';

interface ListedKeys {
  readonly data: readonly { readonly id: string; readonly kem: string; readonly publicKey: string }[];
}

const kemsOf = async (d: ServedDesk, ring: string): Promise<string[]> =>
  (await d.json<ListedKeys>(`keyring keys ${ring} --json`)).data.map(({ kem }) => kem);

/** Of a ring of X25519 with two keys, a file encrypted with each, and one encrypted without the private key. */
async function older(d: ServedDesk, ring = 'r'): Promise<void> {
  await d.json(`keyring create ${ring} --kem x25519 --json --private-key-out ${ring}.pem`);
  const encrypt = async (line: string, stdin: string) =>
    assert.equal((await d.kms(`encrypt --ring ${ring} ${line} -o ${ring}-${stdin}.kms`, { stdin })).code, 0);
  await encrypt(`--private-key ${ring}.pem`, 'first');
  await encrypt('--recipient', 'sealed');
  assert.equal((await d.kms(`keyring rotate ${ring}`)).code, 0);
  await encrypt(`--private-key ${ring}.pem`, 'second');
}

/** The pair of that number in the file of private keys. */
async function onlyKey(d: ServedDesk, file: string, at: number): Promise<string> {
  const keys = readPrivateKeys(await readFile(d.path(file)), file);
  const pem = privateKeyPem(keys.slice(at, at + 1));
  await writeFile(d.path(`${at}.pem`), pem, { mode: 0o600 });
  return pem;
}

test('the new private key alone opens what was encrypted before, files sealed to the earlier one aside', async () => {
  await using d = await servedDesk();
  await older(d);
  const upgrade = 'keyring upgrade r --private-key r.pem --rewrap';
  assert.match((await d.kms(`${upgrade} --dry-run`)).stdout, /^kem {9}x25519$(.|\n)*^left {8}2$/m);
  assert.deepEqual(await kemsOf(d, 'r'), ['x25519', 'x25519']);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  const counted = await d.json(`${upgrade} --dry-run --json`);
  assert.deepEqual([counted.rewrapped, counted.left], [0, 2]);
  assert.deepEqual(await kemsOf(d, 'r'), ['x25519', 'x25519', 'mlkem768-x25519']);

  const done = await d.kms(upgrade);
  assert.deepEqual([done.code, done.stderr], [0, '']);
  assert.match(done.stdout, /^wrapped anew {2}2\nleft {10}0\n$/m);
  assert.deepEqual(await kemsOf(d, 'r'), Array(3).fill('mlkem768-x25519'));
  const again = await d.json(`${upgrade} --json`);
  assert.deepEqual([again.rewrapped, again.left], [0, 0]);

  const hybrid = await onlyKey(d, 'r.pem', 1);
  const earlier = await onlyKey(d, 'r.pem', 0);
  const shown = done.stdout + done.stderr + JSON.stringify(again);
  for (const pem of [hybrid, earlier]) assert.ok(!shown.includes(pem.split('\n')[1] ?? ''));
  for (const text of ['first', 'second']) {
    assert.deepEqual([text, (await d.kms(`decrypt --private-key 1.pem r-${text}.kms`)).stdout], [text, text]);
    const late = await d.kms(`decrypt --private-key 0.pem r-${text}.kms`);
    assert.deepEqual([late.code, late.stdout], [1, '']);
  }
  assert.equal((await d.kms('decrypt --private-key 1.pem r-sealed.kms')).code, 1);
  assert.equal((await d.kms('decrypt --private-key 0.pem r-sealed.kms')).stdout, 'sealed');
});

test('it goes with the upgrade itself, and with a pair that is kept elsewhere', async () => {
  await using d = await servedDesk();
  await older(d, 'a');
  const { rewrapped, left } = await d.json('keyring upgrade a --private-key a.pem --rewrap --json');
  assert.deepEqual([rewrapped, left], [2, 0]);
  await older(d, 'b');
  const { publicKey, privateKey } = generateRingKey('mlkem768-x25519');
  await writeFile(d.path('own.pub'), publicKey);
  await writeFile(d.path('own.pem'), privateKey, { mode: 0o600 });
  const own = await d.json('keyring upgrade b --private-key b.pem --public-key own.pub --rewrap --json');
  assert.deepEqual([own.rewrapped, own.left], [2, 0]);
  assert.equal((await d.kms('decrypt --private-key own.pem b-second.kms')).stdout, 'second');
  const again = await d.json('keyring upgrade b --private-key b.pem --public-key own.pub --rewrap --json');
  assert.deepEqual([again.rewrapped, again.left], [0, 0]);
});

test('no key is given to a public key that is not known to be the owner', async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  // Whoever may configure the keyring, or the appliance itself, says another one.
  const { publicKey } = generateRingKey('mlkem768-x25519');
  await d.appliance.call('PUT', '/ks/config', { ringname: 'r', config: { publicKey } });
  const before = await d.json('keyring keys r --json');
  for (const line of ['--private-key r.pem', '--private-key r.pem --public-key mine.pub']) {
    await writeFile(d.path('mine.pub'), generateRingKey('mlkem768-x25519').publicKey);
    const refused = await d.kms(`keyring upgrade r ${line} --rewrap`);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /the public key of the keyring r is not one of yours: no key was wrapped to it; name/);
  }
  assert.deepEqual(await d.json('keyring keys r --json'), before);
});

test('keys that no private key here opens are left, and said to be', async () => {
  await using d = await servedDesk();
  await older(d);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem')).code, 0);
  await onlyKey(d, 'r.pem', 1);
  const some = await d.kms('keyring upgrade r --private-key 1.pem --rewrap');
  assert.deepEqual(
    [some.code, some.stdout.match(/^wrapped anew.*\n.*/m)?.[0]],
    [1, 'wrapped anew  0\nleft          2'],
  );
  assert.match(some.stderr, /^kms: 2 keys of r are left as they are: no private key here opens them/);
  assert.equal((await d.kms('keyring upgrade r --private-key r.pem --rewrap')).code, 0);
  for (const [line, message] of [
    ['--prepare --rewrap', /--prepare and --rewrap exclude each other/],
    ['--dry-run', /--dry-run goes with --rewrap/],
  ] as const) {
    const wrong = await d.kms(`keyring upgrade r ${line}`);
    assert.deepEqual([wrong.code, message.test(wrong.stderr)], [2, true], wrong.stderr);
  }
});
