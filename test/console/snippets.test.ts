// The snippets of the console: each is run as it is shown, with a served appliance, and none has a secret in it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { buildClient, clientName } from '../../build/client.ts';
import { paths } from '../../build/paths.ts';
import type { Initialised } from '../../src/appliance/init.ts';
import { managedKeySnippets } from '../../src/console/snippets/key-snippets.ts';
import {
  apikeySnippets,
  keyringSnippets,
  type Snippet,
  type SnippetPlace,
} from '../../src/console/snippets/snippet-texts.ts';
import { parseFlags } from '../../src/model/flags.ts';
import { type KeyType, usualUses } from '../../src/model/key-types.ts';
import { serve } from '../../src/server/serve.ts';

const dir = await mkdtemp(join(tmpdir(), 'kms-snippets-'));
let made: Initialised | undefined;
const served = await serve({
  data: join(dir, 'kms-data'),
  listen: '127.0.0.1:0',
  vaultListen: '127.0.0.1:0',
  logLevel: 'silent',
  onInitialised: (first) => {
    made = first;
  },
});
after(async () => {
  await served.close();
  await rm(dir, { recursive: true, force: true });
});
const rootKey = made?.apiKey.key ?? '';
const place = { baseUrl: served.url };
const inFile: SnippetPlace = { ...place, keyFile: 'apik_x.key' };

await mkdir(join(dir, 'bin'));
const kms = `#!/bin/sh\nexec '${process.execPath}' '${join(paths.root, 'src/main.ts')}' "$@"\n`;
await writeFile(join(dir, 'bin/kms'), kms, { mode: 0o755 });
await writeFile(join(dir, 'apik_x.key'), `${rootKey}\n`, { mode: 0o600 });
await buildClient(join(dir, 'node_modules', clientName));
const report = randomBytes(100_000);
await writeFile(join(dir, 'report.pdf'), report);

const environment = {
  PATH: `${join(dir, 'bin')}:${process.env.PATH}`,
  HOME: dir,
  VAULT_ADDR: served.vaultAddress ?? '',
};

async function run(command: string, args: readonly string[], withKey = true): Promise<string> {
  const env = { ...environment, ...(withKey && { KMS_API_KEY: rootKey }) };
  return (await promisify(execFile)(command, [...args], { cwd: dir, env })).stdout;
}

async function call(path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' };
  const { ok, status } = await fetch(served.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.ok(ok, `${path}: ${status}`);
}

const hvacPython = join(process.env.KMS_INTEROP || join(paths.root, '.cache/interop'), 'hvac==2.4.0/bin/python');
const hasHvac = existsSync(hvacPython);
if (!hasHvac) process.stderr.write('kms: no hvac is here: what is for hvac is not run\n');

/** The output of a snippet; undefined if what runs it is not installed. */
async function output({ language, code }: Snippet, withKey = true): Promise<string | undefined> {
  assert.ok(!code.includes(rootKey));
  if (language === 'hvac') return hasHvac ? run(hvacPython, ['-c', code], withKey) : undefined;
  if (language === 'Python') return run('python3', ['-c', code], withKey);
  if (language !== 'TypeScript') return run('bash', ['-euo', 'pipefail', '-c', code], withKey);
  await writeFile(join(dir, 'snippet.mts'), code);
  return run(process.execPath, [join(dir, 'snippet.mts')], withKey);
}

test('what is for a keyring encrypts a file and decrypts it, with the key in a variable or in a file', async () => {
  const create = ['keyring', 'create', 'Pay.roll', '--data', 'kms-data', '--private-key-out', 'pay.roll.key'];
  await run('kms', create, false);
  const languages = ['kms', 'curl', 'TypeScript', 'Python'];
  for (const [at, withKey] of [
    [place, true],
    [inFile, false],
  ] as const) {
    const snippets = keyringSnippets(at, 'pay.roll', 'both');
    assert.deepEqual(
      snippets.map(({ language }) => language),
      languages,
    );
    for (const snippet of snippets) {
      for (const file of ['report.pdf.kms', 'copy.pdf']) await rm(join(dir, file), { force: true });
      const printed = await output(snippet, withKey);
      if (snippet.language === 'curl')
        assert.match(printed ?? '', /^\{"ringId":"ring_\w+","ringname":"Pay\.roll","key":/i);
      else if (snippet.language === 'Python') assert.match(printed ?? '', /'encrypted'.*\nTrue\n$/);
      else assert.ok(report.equals(await readFile(join(dir, 'copy.pdf'))), snippet.language);
    }
  }
});

test('what is for a new API key does only what its flags allow', async () => {
  const shown = (...flags: string[]) =>
    apikeySnippets(inFile, parseFlags(Object.fromEntries(flags.map((flag) => [flag, true]))), ['ledger', 'pay.roll']);
  const both = shown('keyring.pay.roll.encrypt', 'keyring.pay.roll.decrypt');
  assert.deepEqual(both, { ring: 'pay.roll', use: 'both', snippets: keyringSnippets(inFile, 'pay.roll', 'both') });
  assert.equal(shown('keyring.*.encrypt').ring, 'ledger');
  const writing = shown('keyring.pay.roll.encrypt').snippets;
  const reading = shown('keyring.pay.roll.decrypt').snippets;
  assert.equal(shown('keyring.pay.roll.encrypt').use, 'encrypt');
  for (const { code } of writing) {
    assert.doesNotMatch(code, /kms decrypt|\/ks\/decrypt|decryptBytes|private/);
    assert.ok(!code.includes('pay.roll.key'), 'what only encrypts needs no private key');
  }
  for (const { code } of reading) assert.doesNotMatch(code, /kms encrypt|\/ks\/encrypt|encryptBytes/);
  assert.deepEqual(
    reading.map(({ language }) => language),
    ['kms', 'TypeScript'],
  );
  for (const [index, language] of (['kms', 'TypeScript'] as const).entries()) {
    await rm(join(dir, 'report.pdf.kms'), { force: true });
    await writeFile(join(dir, 'report.pdf'), report);
    await output(writing.find((each) => each.language === language) ?? assert.fail(language), false);
    await rm(join(dir, 'report.pdf'));
    await output(reading[index] ?? assert.fail(language), false);
    assert.ok(report.equals(await readFile(join(dir, 'report.pdf'))), language);
  }
  const other = shown('asset.search');
  assert.equal(other.ring, undefined);
  for (const snippet of other.snippets) assert.match((await output(snippet, false)) ?? '', /readiness/);
});

for (const type of ['aes256-gcm', 'chacha20-poly1305', 'rsa-2048', 'ed25519', 'ecdsa-p384', 'hmac-sha512'] as const) {
  for (const derived of type === 'aes256-gcm' || type === 'chacha20-poly1305' ? [false, true] : [false]) {
    const name = `${type}${derived ? '-derived' : ''}`;
    test(`what is for a managed key works with ${name}`, async () => {
      const uses = type === 'rsa-2048' ? (['encrypt', 'decrypt'] as const) : usualUses(type);
      await call('/managed-keys', { name, type, uses, derived });
      const snippets = managedKeySnippets(place, { name, type, uses, derived });
      assert.deepEqual(
        snippets.map(({ language }) => language),
        ['kms', 'curl', 'TypeScript', 'Python', 'hvac'],
      );
      for (const snippet of snippets) {
        const printed = await output(snippet);
        const good =
          /hello\n|"plaintext":"aGVsbG8="|b'hello'|"valid":true|'valid': True|^vault:v1:\S+ true\n$|^valid\n$/;
        if (printed !== undefined) assert.match(printed, good, snippet.language);
      }
    });
  }
}

test('a managed key that neither encrypts nor signs nor makes MACs has no programs', () => {
  for (const uses of [['export'], ['derive'], ['encrypt'], ['verify']] as const) {
    assert.deepEqual(managedKeySnippets(place, { name: 'a', type: 'ecdsa-p256', uses, derived: false }), []);
  }
  const languages = (type: KeyType) =>
    managedKeySnippets(place, { name: 'a', type, uses: ['sign', 'verify'], derived: false }).map(
      (each) => each.language,
    );
  assert.ok(!languages('ecdsa-secp256k1').includes('hvac'), 'Vault has no such keys');
});

test('addresses and names are quoted for each language', () => {
  const odd = { baseUrl: "https://[2001:db8::1]:8443/a'b$c", keyFile: 'k.key' };
  const [kmsCode, curl, typescript, python] = keyringSnippets(odd, 'payroll', 'both').map(({ code }) => code);
  assert.match(kmsCode ?? '', /KMS_SERVER='https:\/\/\[2001:db8::1\]:8443\/a'\\''b\$c' KMS_API_KEY_FILE=k\.key/);
  assert.match(curl ?? '', /'https:\/\/\[2001:db8::1\]:8443\/a'\\''b\$c\/ks\/encrypt'/);
  for (const code of [typescript, python]) assert.match(code ?? '', /"https:\/\/\[2001:db8::1\]:8443\/a'b\$c"/);
});
