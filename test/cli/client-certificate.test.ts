// Client certificates on the command line: a proof of an API key that a command shows to an appliance with TLS, and the
// commands that add and list such proofs.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { serve } from '../../src/server/serve.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { type Desk, desk } from './kms.ts';
import { servedDesk } from './served.ts';

const id = 'spiffe://prod.example/payroll';

/** An appliance with TLS, of which `run` knows the authority, and an API key `app` without a secret. */
async function overTls(): Promise<Desk & { readonly to: string }> {
  const d = await desk();
  await d.json('init --json');
  await writeFile(d.path('cert.pem'), certificate);
  await writeFile(d.path('tls.key'), privateKey, { mode: 0o600 });
  const server = await serve({
    data: d.path('kms-data'),
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    tlsCert: d.path('cert.pem'),
    tlsKey: d.path('tls.key'),
  } as Parameters<typeof serve>[0]);
  const { port } = new URL(server.url);
  await d.json('apikey create --account admin --name app --flag keyring.list --without-secret --json');
  return {
    ...d,
    to: `--server https://localhost:${port} --ca-file cert.pem`,
    async [Symbol.asyncDispose]() {
      await server.close();
      await d[Symbol.asyncDispose]();
    },
  };
}

const own = '--client-cert client/client.crt --client-key client/client.key';

test('a command shows a client certificate, alone, from a profile, and for a token that is bound to it', async () => {
  await using d = await overTls();
  const issued = await d.kms('apikey proof add app certificate --issue --out client');
  assert.match(issued.stderr, /^kms: certificates count on connections with TLS to the appliance itself, not through /);
  const run = async (line: string, env = {}) => d.kms(line, { env });
  const bare = await run(`keyring list ${d.to}`);
  assert.match(bare.stderr, /^kms: no API key was given; use [^\n]* or --client-cert FILE\n$/);
  const listed = await run(`keyring list ${d.to} ${own}`);
  assert.deepEqual([listed.code, listed.stdout], [0, ''], listed.stderr);
  const forbidden = await run(`user list ${d.to} ${own}`);
  assert.match(forbidden.stderr, /permission flag/, 'with the flags of the key');
  const named = { KMS_CLIENT_CERT: d.path('client/client.crt'), KMS_CLIENT_KEY: d.path('client/client.key') };
  assert.equal((await run(`keyring list ${d.to}`, named)).code, 0);
  const both = await readFile(d.path('client/client.crt'), 'utf8');
  await writeFile(d.path('both.pem'), both + (await readFile(d.path('client/client.key'), 'utf8')), { mode: 0o600 });
  assert.equal((await run(`keyring list ${d.to} --client-cert both.pem`)).code, 0);

  const added = await run(`profile add tls ${d.to} ${own}`);
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /^API key +none\n(?:.+\n)*certificate +\S+client\/client\.crt$/m);
  assert.equal((await run('keyring list --profile tls')).code, 0);

  const login = await run(`apikey login app --certificate ${d.to} ${own}`);
  assert.match(login.stdout, /^kmswt_\w+\n$/, login.stderr);
  const token = { KMS_API_KEY: login.stdout.trim() };
  assert.equal((await run(`keyring list ${d.to} ${own}`, token)).code, 0);
  assert.equal((await run(`keyring list ${d.to}`, token)).code, 1, 'without the certificate');
  const refused = await run(`apikey login nobody --certificate ${d.to} ${own}`);
  assert.match(refused.stderr, /the client certificate was refused: no API key of that name or id/);
  const proof = (await d.json<{ proofs: [{ id: string }] }>('apikey proof list app --json')).proofs[0].id;
  assert.equal((await d.kms(`apikey proof disable app ${proof} --yes`)).code, 0);
  const off = await run(`keyring list ${d.to} ${own}`);
  assert.match(
    off.stderr,
    /^kms: the client certificate proves no API key here; `kms apikey login KEY --certificate` says why; /,
  );
});

test('a client certificate that cannot be shown is refused before anything is sent', async () => {
  await using d = await desk();
  const program = await TestCertificate.alone(Date.now());
  const other = await TestCertificate.alone(Date.now());
  await writeFile(d.path('one.crt'), program.pem);
  await writeFile(d.path('one.key'), await program.keyPem(), { mode: 0o600 });
  await writeFile(d.path('other.key'), await other.keyPem(), { mode: 0o600 });
  const to = '--server https://127.0.0.1:1';
  for (const [line, code, why] of [
    [
      `keyring list ${to} --client-cert one.crt --client-key other.key`,
      1,
      /one\.crt and \S+other\.key are no client [^;]+; the key in \S+other\.key is that of another certificate$/m,
    ],
    [`keyring list ${to} --client-cert one.key --client-key one.key`, 1, /are no client certificate and its key/],
    [
      `keyring list ${to} --client-cert one.crt`,
      1,
      /one\.crt has no private key in it; name its file with --client-key/,
    ],
    [`keyring list ${to} --client-key one.key`, 2, /--client-key goes with --client-cert/],
    ['keyring list --client-cert one.crt', 2, /--client-cert goes with --server/],
    ['keyring list --server http://127.0.0.1:1 --client-cert one.crt --client-key one.key', 2, /is named with http/],
    ['profile add p --server http://127.0.0.1:1 --client-cert one.crt --client-key one.key', 2, /is named with http/],
    [`profile add p ${to} --client-cert one.crt --client-key other.key`, 1, /are no client certificate and its key/],
    ['apikey login app --certificate --token-file x', 2, /--certificate and --token-file exclude each other/],
  ] as const) {
    const ran = await d.kms(line);
    assert.deepEqual([ran.code, ran.stdout], [code, ''], line);
    assert.match(ran.stderr, why, line);
  }
  await chmod(d.path('one.key'), 0o644);
  const exposed = await d.kms(`keyring list ${to} --client-cert one.crt --client-key one.key`);
  assert.match(exposed.stderr, /one\.key/);
  assert.deepEqual([exposed.code, exposed.stdout], [1, '']);
});

test('a list of proofs tells what certificates are trusted, and what has ended', async () => {
  await using d = await servedDesk();
  // The appliance of this test lives in January 2026, long before the command.
  const now = d.appliance.world.now();
  const authority = await TestCertificate.authority(now, 'CN=Programs, O=Acme', { notAfter: Date.UTC(2126, 0, 1) });
  const pinned = await TestCertificate.alone(now);
  await writeFile(d.path('ca.crt'), authority.pem);
  await writeFile(d.path('one.crt'), pinned.pem);
  await d.kms('apikey create --account admin --name app --flag keyring.list --without-secret');
  const add = async (line: string) => {
    const { code, stdout, stderr } = await d.kms(`apikey proof add app certificate ${line}`);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const byName = await add(`--ca ca.crt --san ${id}`);
  assert.match(byName, /^authority +CN=Programs, O=Acme$/m);
  assert.match(byName, /^authority's key \(SHA-256\) +[0-9a-f]{64}$/m);
  assert.match(byName, /^valid until /m);
  const one = await add('--file one.crt');
  assert.match(one, /^public key \(SHA-256\) +[0-9a-f]{64}$/m);
  assert.match(one, /^certificate until /m);
  await add('--issue --out client');
  const rows = async () => (await d.kms('apikey proof list app --wide')).stdout.split('\n').slice(1, 4);
  const [first = '', second = '', third = ''] = await rows();
  assert.match(first, / yes +2126-01-01 +uri:spiffe:\/\/prod\.example\/payroll by CN=Programs, O=Acme /);
  assert.match(second, / yes +2026-02-01 +pinned, SHA-256 [0-9a-f]{16}… /, 'its key has no end');
  assert.match(third, / expired +2026-04-02 +issued here, SHA-256 [0-9a-f]{16}… /);
  for (const columns of [60, 80, 100]) {
    const narrow = await d.kms('apikey proof list app', { tty: { stdin: true, stdout: true, stderr: true, columns } });
    const shown = stripVTControlCharacters(narrow.stdout);
    for (const end of ['UNTIL', '2126-01-01', '2026-02-01', '2026-04-02']) assert.ok(shown.includes(end), shown);
  }
});

test('private keys stay on this machine, and other forms are refused by what they are', async () => {
  await using d = await servedDesk();
  const program = await TestCertificate.alone(d.appliance.world.now());
  await writeFile(d.path('both.pem'), program.pem + (await program.keyPem()));
  await writeFile(d.path('one.der'), program.der);
  await writeFile(d.path('one.p12'), program.der);
  await writeFile(d.path('one.csr'), program.pem.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'));
  await writeFile(d.path('weak.crt'), program.pem.split('\n').toSpliced(3, 1).join('\n'));
  await d.kms('apikey create --account admin --name app --flag keyring.list --without-secret');
  const before = d.appliance.log.length;
  const trust = '--issuer https://ci.example.org --audience kms --subject build';
  for (const [line, why] of [
    [
      'certificate --file both.pem',
      /both\.pem has a private key in it, which the appliance must not get; give the cert/,
    ],
    [`certificate --ca both.pem --san ${id}`, /both\.pem has a private key in it/],
    [`jwt ${trust} --ca both.pem`, /both\.pem has a private key in it/],
    [
      'certificate --file one.p12',
      /one\.p12: .*; `openssl pkcs12 -in \S+one\.p12 -nokeys -clcerts -out client\.crt` takes/,
    ],
    ['certificate --file one.csr', /one\.csr: .*; it is a request for a certificate: give the certificate that/],
    ['certificate --file one.der', /one\.der: expected the certificate in PEM, .*; `openssl x509 -inform der -in/],
  ] as const) {
    const { code, stderr } = await d.kms(`apikey proof add app ${line}`);
    assert.equal(code, 1, line);
    assert.match(stderr, why, line);
  }
  assert.equal(d.appliance.log.length, before, 'nothing was sent');
  const malformed = await d.kms('apikey proof add app certificate --file weak.crt');
  assert.match(malformed.stderr, /^kms: --file: [^\n]+\n$/, 'refusals name the option that was typed');
});

test('a test of a token says how a certificate is tried', async () => {
  await using d = await servedDesk();
  await d.kms('apikey create --account admin --name app --flag keyring.list --without-secret');
  const { code, stderr } = await d.kms('apikey proof test app', { stdin: 'a.b.c' });
  assert.equal(code, 1);
  assert.match(stderr, /`kms apikey login KEYID --certificate` tries a client certificate/);
});

test('what could not be issued leaves no directory behind that was not there', async () => {
  await using d = await servedDesk();
  await d.kms('apikey create --account admin --name app --flag keyring.list --without-secret');
  await mkdir(d.path('there'));
  for (const [line, code] of [
    ['app certificate --issue --days 826 --out new', 1],
    ['app certificate --issue --days 826 --out one/two/three', 1],
    ['app certificate --issue --days 826 --out there/new', 1],
    ['nobody certificate --issue --out new', 1],
    ['app certificate --issue --out new --server http://127.0.0.1:1', 3],
  ] as const) {
    const env = line.includes('--server') ? { KMS_API_KEY: 'kms_x' } : {};
    assert.equal((await d.kms(`apikey proof add ${line}`, { env })).code, code, line);
    assert.deepEqual([existsSync(d.path('new')), existsSync(d.path('one'))], [false, false], line);
  }
  assert.deepEqual(await readdir(d.path('there')), []);
});
