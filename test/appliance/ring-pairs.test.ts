// Keyrings of each kind, including those with a changed key pair, through rekeys, new master keys and backups; and a
// frozen appliance of the first program that had them. The recorded private keys open all of it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { KeyListItem } from '../../src/api/keyrings.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { generateRingKey, privateKeyPem, publicKeyBytes, unwrapRingKey } from '../../src/client/ring-keys.ts';
import { toHex } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import type { Kem } from '../../src/model/kems.ts';
import { asking, backupOf, type Place, place } from './tenant-appliance.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-ring-pairs-'));
after(() => rmSync(base, { recursive: true, force: true }));

type Ask = Place['local'];

/** The result of an encrypt with a ring, and the expected key. */
interface Made {
  readonly ring: string;
  readonly keyId: string;
  readonly kem: Kem;
  readonly publicKey: string;
  readonly header: string;
  readonly key: string;
  /** Earlier wrappings of a rewrapped key. */
  readonly earlier?: readonly string[];
}

interface Sample {
  /** All private keys that a ring has had, as PEM, by the ring's name. */
  readonly privateKeys: Readonly<Record<string, string>>;
  readonly made: readonly Made[];
}

async function sampleOf(ask: Ask): Promise<Sample> {
  const privateKeys: Record<string, string> = {};
  const made: Made[] = [];
  const good = async (method: string, path: string, body: object) => {
    const answer = await ask(method, path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  const encrypt = async (ringname: string, publicKey: string) => {
    const { key, header } = await good('POST', '/ks/encrypt', { ringname });
    const bytes = await unwrapRingKey({ privateKey: privateKeys[ringname] ?? '', key });
    made.push({ ring: ringname, keyId: key.id, kem: key.kem, publicKey, header, key: toHex(bytes) });
  };
  for (const [name, ...kems] of [
    ['plain', 'x25519'],
    ['hybrid', 'mlkem768-x25519'],
    ['upgraded', 'x25519', 'mlkem768-x25519'],
    ['often', 'mlkem768-x25519', 'x25519', 'mlkem768-x25519', 'mlkem768-x25519'],
  ] as const) {
    const [first, ...later] = kems;
    const { ring, privateKey } = await good('POST', '/ks/keyrings', { name, kem: first });
    privateKeys[name] = privateKeyPem(privateKey);
    await encrypt(name, ring.publicKey);
    for (const kem of later) {
      const pair = generateRingKey(kem);
      privateKeys[name] += pair.privateKey;
      await good('PUT', '/ks/config', { ringname: name, config: { publicKey: pair.publicKey } });
      await good('POST', '/ks/rotate', { ringname: name });
      await encrypt(name, pair.publicKey);
    }
  }
  const { privateKey, kem, publicKey } = { ...generateRingKey('mlkem768-x25519'), kem: 'mlkem768-x25519' as const };
  const { ring, privateKey: first } = await good('POST', '/ks/keyrings', { name: 'rewrapped' });
  privateKeys.rewrapped = privateKeyPem(first);
  await encrypt('rewrapped', ring.publicKey);
  await good('PUT', '/ks/config', { ringname: 'rewrapped', config: { publicKey } });
  await good('POST', '/ks/rotate', { ringname: 'rewrapped' });
  const { data } = (await ask('GET', '/ks/keyrings/rewrapped/keys?wrapped=true')).body;
  const [item] = data;
  const { value } = item.keyData.encrypted.key;
  const bytes = await unwrapRingKey({ privateKey: privateKeys.rewrapped, key: item });
  const { wrapped, iv } = wrapRingKey('ks', publicKeyBytes(publicKey) ?? assert.fail(), item.id, bytes, systemRandom);
  const replaces = createHash('sha256').update(value, 'base64').digest('base64');
  const keys = [{ id: item.id, wrapped, iv, replaces }];
  await good('POST', '/ks/rewrap', { ringname: 'rewrapped', publicKey, keys });
  made.push({ ...(made.pop() ?? assert.fail()), kem, publicKey, earlier: [value] });
  // The earlier key is no longer needed.
  privateKeys.rewrapped = privateKey;
  await encrypt('rewrapped', publicKey);
  return { privateKeys, made };
}

async function opensAll(ask: Ask, { privateKeys, made }: Sample): Promise<void> {
  for (const { ring, keyId, kem, publicKey, header, key } of made) {
    const { body } = await ask('POST', '/ks/decrypt', { header });
    assert.deepEqual([body.ringname, body.key.id, body.key.kem], [ring, keyId, kem]);
    assert.equal(toHex(await unwrapRingKey({ privateKey: privateKeys[ring] ?? '', key: body.key })), key);
    const read = (await ask('GET', `/ks/keyrings/${ring}/keys/${keyId}`)).body;
    assert.deepEqual([read.kem, read.publicKey], [kem, publicKey]);
  }
  for (const ring of Object.keys(privateKeys)) {
    const { data } = (await ask('GET', `/ks/keyrings/${ring}/keys?wrapped=true`)).body;
    assert.deepEqual(
      (data as KeyListItem[]).map(({ id, publicKey, earlier }) => [
        id,
        publicKey,
        earlier?.map(({ keyData }) => keyData.encrypted.key.value),
      ]),
      made.filter((each) => each.ring === ring).map(({ keyId, publicKey, earlier }) => [keyId, publicKey, earlier]),
    );
  }
}

async function whileRestored(from: string, keyFile: string, work: (ask: Ask) => Promise<void>): Promise<void> {
  const data = mkdtempSync(join(base, 'restored-'));
  rmSync(data, { recursive: true });
  await restoreAppliance({ from, data, keys: { keyFile, env: () => undefined } });
  const appliance = await openAppliance({ data, keyFile });
  try {
    await work(asking(appliance));
  } finally {
    await appliance.close();
  }
}

test('new keys of tenant and appliance, a restart, and a backup', async () => {
  await using p = await place();
  const sample = await sampleOf(p.local);
  await opensAll(p.local, sample);
  assert.equal((await p.local('POST', '/local/tenants/default/rekey', {})).status, 200);
  assert.equal((await p.local('POST', '/local/master/rotate', {})).status, 200);
  await p.reopen();
  await opensAll(p.local, sample);
  const file = join(base, 'all.kms-backup');
  await backupOf(p, file);
  await whileRestored(file, p.made.keyFile, (ask) => opensAll(ask, sample));
});

// `test/compat/rings-1` is a backup of an appliance with these rings, its master key, and the results.
// KMS_WRITE_FIXTURE=1 writes it if it is missing.
const fixture = join(import.meta.dirname, '../compat/rings-1');
if (process.env.KMS_WRITE_FIXTURE && !existsSync(fixture)) {
  mkdirSync(fixture);
  await using p = await place();
  const sample = await sampleOf(p.local);
  await backupOf(p, join(fixture, 'backup.kms-backup'));
  cpSync(p.made.keyFile, join(fixture, 'master-key.txt'));
  writeFileSync(join(fixture, 'made.json'), `${JSON.stringify(sample, null, 1)}\n`);
}

test('what the rings of 0.1.0 made opens for ever', async () => {
  const sample: Sample = JSON.parse(readFileSync(join(fixture, 'made.json'), 'utf8'));
  assert.equal(sample.made.length, 10);
  const keyFile = join(base, 'compat.key');
  cpSync(join(fixture, 'master-key.txt'), keyFile);
  chmodSync(keyFile, 0o600);
  await whileRestored(join(fixture, 'backup.kms-backup'), keyFile, (ask) => opensAll(ask, sample));
});
