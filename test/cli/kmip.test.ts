// `kms kmip client create`: files that hold together, settings, and nothing left behind when it fails.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { type ServedDesk, servedDesk } from './served.ts';

const files = ['ca.crt', 'client.crt', 'client.key', 'client.p12', 'client.p12.password', 'settings.md'];
const create = 'kmip client create san --account admin --out san';

const keys = async (d: ServedDesk): Promise<readonly string[]> =>
  [...(await d.kms('apikey list --json')).stdout.matchAll(/apik_\w{26}/g)].map(([id]) => id);

test('the files of a client belong together, and only its user reads the secret ones', async () => {
  await using d = await servedDesk();
  const made = await d.kms(`${create} --address kms.example:5697`);
  assert.equal(made.code, 0, made.stderr);
  assert.deepEqual(readdirSync(d.path('san')).toSorted(), files);
  for (const name of ['client.key', 'client.p12', 'client.p12.password']) {
    assert.equal(statSync(d.path('san', name)).mode & 0o777, 0o600, name);
  }
  const read = (name: string) => readFileSync(d.path('san', name));
  const [cert, key, ca] = [read('client.crt'), read('client.key'), read('ca.crt')];
  createSecureContext({ cert, key });
  assert.ok(new X509Certificate(cert).verify(new X509Certificate(ca).publicKey));
  const passphrase = String(read('client.p12.password')).trimEnd();
  assert.match(passphrase, /^[0-9a-f]{30}$/);
  createSecureContext({ pfx: read('client.p12'), passphrase });
  const page = String(read('settings.md'));
  assert.match(page, /serverName: kms\.example\n {4}port: 5697/);
  assert.ok(!page.includes(passphrase) && !made.stdout.includes(passphrase) && !made.stderr.includes(passphrase));
});

test('settings name the server of the command, and a name in them is no code', async () => {
  await using d = await servedDesk();
  const { args, env } = d.network();
  const words = ['kmip', 'client', 'create', "a'; DROP TABLE x; -- `b`", '--account', 'admin', '--out', 'odd'];
  const made = await d.kms([...words, ...args], { env });
  assert.equal(made.code, 0, made.stderr);
  const page = readFileSync(d.path('odd', 'settings.md'), 'utf8');
  assert.match(page, /serverName: 127\.0\.0\.1\n {4}port: 5696/);
  assert.match(page, /'a-DROP-TABLE-x----b-', '127\.0\.0\.1', 5696/);
  const six = await d.kms(`${create} --address [::1]:5697`);
  assert.equal(six.code, 0, six.stderr);
  const ofSix = readFileSync(d.path('san', 'settings.md'), 'utf8');
  assert.match(ofSix, /serverName: ::1\n/);
  assert.match(ofSix, /"\[::1\]:5697"/);
  assert.doesNotMatch(ofSix, /\[::1\](?!:5697)/, 'brackets only where the port follows');
  for (const address of ['kms.example:70000', '[:::]', '[::1', '::1', 'a_b!']) {
    const wrong = await d.kms(`${create} --address ${address}`);
    assert.equal(wrong.code, 2, address);
    assert.match(wrong.stderr, /^kms: --address: expected HOST or HOST:PORT; see /);
  }
  const unnamed = await d.kms(['kmip', 'client', 'create', '', '--account', 'admin', '--out', 'none']);
  assert.deepEqual([unnamed.code, /expected a name/.test(unnamed.stderr)], [2, true], unnamed.stderr);
});

test('if the certificate is refused, neither the API key nor a file stays', async () => {
  await using d = await servedDesk();
  const before = await keys(d);
  const refused = await d.kms(`${create} --days 100000`);
  assert.notEqual(refused.code, 0);
  assert.deepEqual(await keys(d), before);
  assert.equal(existsSync(d.path('san')), false);
});

test('a name that another API key has is refused, and the key is named', async () => {
  await using d = await servedDesk();
  assert.equal((await d.kms(create)).code, 0);
  const before = await keys(d);
  const refused = await d.kms(`${create}2`);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /an API key has the name san already: apik_/);
  assert.match(refused.stderr, /kms apikey proof add apik_\w{26} certificate --issue/);
  assert.deepEqual(await keys(d), before);
  assert.equal(existsSync(d.path('san2')), false);
});

test('where there is nothing to talk to, no file stays', async () => {
  await using d = await servedDesk();
  const env = { KMS_DATA: d.path('nowhere') };
  for (const command of [create, 'apikey proof add app certificate --issue --out san']) {
    const refused = await d.kms(command, { env });
    assert.notEqual(refused.code, 0);
    assert.equal(existsSync(d.path('san')), false, command);
  }
});

test('a flag that grants nothing is refused before anything is made', async () => {
  await using d = await servedDesk();
  const before = await keys(d);
  const refused = await d.kms(`${create} --flag kmip.gett`);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /kmip\.get/);
  assert.deepEqual(await keys(d), before);
  assert.equal(existsSync(d.path('san')), false);
});

test('if a file cannot be written, nothing is made', async () => {
  await using d = await servedDesk();
  const before = await keys(d);
  await mkdir(d.path('san'));
  await writeFile(d.path('san', 'client.p12'), 'there');
  const refused = await d.kms(create);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /client\.p12/);
  assert.deepEqual(await keys(d), before);
  assert.deepEqual(readdirSync(d.path('san')), ['client.p12']);
});

test('a caller who may not delete the API key again is told which one is left', async () => {
  await using d = await servedDesk();
  const { key } = await d.json<{ key: string }>(
    'apikey create --account admin --name maker --flag apikey.create --flag kmip.* --json',
  );
  const { args, env } = d.network(key);
  const refused = await d.kms(`${create} ${args.join(' ')}`, { env });
  assert.notEqual(refused.code, 0);
  const [, left] = /the API key (apik_\w{26}) was made, and could not be deleted again: /.exec(refused.stderr) ?? [];
  assert.ok(left, refused.stderr);
  assert.match(refused.stderr, new RegExp(`kms apikey delete ${left}`));
  assert.equal(existsSync(d.path('san')), false);
});

test('a directory that cannot be made is refused at once, and nothing is made', async () => {
  await using d = await servedDesk();
  const before = await keys(d);
  await writeFile(d.path('file'), '');
  await d.kms('apikey create --account admin --name app --without-secret');
  const made = (await keys(d)).length;
  assert.equal(made, before.length + 1);
  // File systems that make no directories, a file, a file within one, and a device.
  for (const out of ['/proc/x', '/proc/x/y/z', '/sys/x', 'file', 'file/x', '/dev/null']) {
    for (const command of ['kmip client create san --account admin', 'apikey proof add app certificate --issue']) {
      const refused = await d.kms(`${command} --out ${out}`);
      assert.equal(refused.code, 1, `${command} --out ${out}: ${refused.stderr}`);
      assert.match(refused.stderr, /^kms: cannot (?:make the directory|write) \S+: /, `${command} --out ${out}`);
    }
  }
  assert.equal((await keys(d)).length, made);
});
