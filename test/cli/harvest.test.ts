// Harvest now, decrypt later: an attacker who copies a new appliance's data directory, shipped copies and backups today
// finds nothing in them that is wrapped to a key of X25519 alone.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { toBase64, toBase64Url, toHex } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { publicFromPrivate } from '../../src/crypto/x25519.ts';
import { parseSecret } from '../../src/seal/custodian-secret.ts';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

interface Slot {
  readonly kind: string;
  readonly publicKey: string;
  readonly wrapped: string;
}

interface Copied {
  readonly name: string;
  readonly content: Buffer;
}

async function copyOf(...places: readonly string[]): Promise<Copied[]> {
  const copied: Copied[] = [];
  for (const place of places) {
    for (const entry of await readdir(place, { recursive: true, withFileTypes: true })) {
      const name = join(entry.parentPath, entry.name);
      if (entry.isFile()) copied.push({ name, content: await readFile(name) });
    }
  }
  return copied;
}

/** The slots of all seals, wherever they are in the files. */
function slotsIn(copied: readonly Copied[]): readonly (readonly Slot[])[] {
  return copied.flatMap(({ content }) =>
    [...content.toString('latin1').matchAll(/\{\n {2}"format": "kms-seal",\n[\s\S]*?\n\}\n/g)].map(
      ([text]) => JSON.parse(text).slots,
    ),
  );
}

/** Names of the files that contain a public key, as bytes or as text. */
function holding(copied: readonly Copied[], publicKey: Uint8Array): readonly string[] {
  const forms = [Buffer.from(publicKey), toHex(publicKey), toBase64(publicKey), toBase64Url(publicKey)];
  return copied.filter(({ content }) => forms.some((form) => content.includes(form))).map(({ name }) => name);
}

const keyOfVersion1 = (secret: Uint8Array): Uint8Array =>
  publicFromPrivate(hkdfSha256(secret, 'kms/slot/v1/x25519', 32));

test('a copy of a new appliance holds no wrapping to X25519 alone', async () => {
  await using d = await desk();
  await d.json('init --json --recovery-kit kit.txt');
  await writeFile(d.path('words.txt'), 'correct horse battery staple', { mode: 0o600 });
  const known = await d.kms('master add-custodian passphrase --passphrase-file words.txt');
  assert.equal(known.code, 0, known.stderr);
  await d.json('master add-custodian shares --shares 3 --threshold 2 --json');
  await mkdir(d.path('copies'));
  await writeFile(d.path('secret.txt'), 'attack at dawn');
  const server = await serving(d, ['--ship-to', d.path('shipped'), '--ship-every', '1s']);
  await d.json('keyring create payroll --json');
  const [ring] = (await d.json<{ data: readonly { publicKey: string }[] }>('keyring list --json')).data;
  for (const line of [
    'encrypt secret.txt --ring payroll -o secret.kms',
    'tenant create blue --host blue.example',
    'backup create copies/before.kms-backup',
    'master rotate',
    'tenant rekey default',
    'backup create copies/after.kms-backup',
  ]) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 0, `${line}: ${stderr}`);
  }
  assert.equal((await server.stop()).code, 0);

  const copied = await copyOf(d.path('kms-data'), d.path('shipped'), d.path('copies'));
  const seals = slotsIn(copied);
  assert.equal(seals.length, 4, 'in the data, in what was shipped, in each backup');
  for (const slots of seals) {
    assert.deepEqual(
      slots.map(({ kind }) => kind),
      ['keyfile', 'recovery-kit', 'passphrase', 'shares'],
    );
    for (const { publicKey, wrapped } of slots) {
      const lengths = [publicKey, wrapped].map((text) => Buffer.from(text, 'base64url').length);
      assert.deepEqual(lengths, [1216, 1120 + 48]);
    }
  }
  for (const file of ['kms-data.master.key', 'kit.txt']) {
    const secret = parseSecret(await readFile(d.path(file)), file);
    assert.deepEqual(holding(copied, keyOfVersion1(secret)), [], file);
  }
  // The ring's key is of X25519, and what is wrapped to it is its owner's business; in copies it is encrypted under the
  // seal's keys.
  assert.deepEqual(holding(copied, Buffer.from(ring?.publicKey ?? assert.fail(), 'base64').subarray(-32)), []);

  // The same search finds a key that is there, in each form.
  const publicKey = keyOfVersion1(new Uint8Array(32).fill(7));
  for (const form of [Buffer.from(publicKey), toHex(publicKey), toBase64(publicKey), toBase64Url(publicKey)]) {
    const content = Buffer.concat([Buffer.from('before '), Buffer.from(form), Buffer.from(' after')]);
    assert.deepEqual(holding([{ name: 'kms.seal', content }], publicKey), ['kms.seal']);
  }
});
