// Authorities that connections trust: bundles with unreadable certificates in any position, the system's own for every
// kind of connection, and whether a served certificate includes its issuers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer as createTls } from 'node:tls';
import { authoritiesIn, certificatesIn, missingIssuer } from '../../src/platform/authorities.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { authority } from '../support/certificates.ts';

const damaged: readonly (readonly [what: string, damage: (pem: string) => string])[] = [
  ['a line less', (pem) => pem.split('\n').toSpliced(3, 1).join('\n')],
  ['no base64', (pem) => pem.replace(/\n[A-Za-z0-9+/]{20}/, '\n!!!!not base64 !!!!!')],
  ['nothing', () => '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'],
  ['no end', (pem) => pem.replace('-----END CERTIFICATE-----', '')],
  ['other bytes', () => '-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n'],
];

test('a bundle is used without the certificates that cannot be read, wherever they stand, and they are named', async () => {
  const good = await Promise.all(['a', 'b', 'c'].map(async (name) => (await authority(name)).cert));
  for (const [what, damage] of damaged) {
    for (let at = 0; at <= good.length; at++) {
      const pems = good.toSpliced(at, 0, damage(good[0] ?? ''));
      const text = pems.map((pem, n) => `# authority ${n}\n${pem}`).join('\n');
      const warnings: string[] = [];
      const pem = authoritiesIn(text, 'ca.pem', (message) => warnings.push(message));
      assert.deepEqual(certificatesIn(pem).readable.length, good.length, `${what} at ${at}`);
      const line = text.slice(0, text.indexOf(`# authority ${at}`)).split('\n').length + 1;
      assert.deepEqual(warnings, [
        `ca.pem: certificate number ${at + 1} (line ${line}) cannot be read and is not trusted; the others are`,
      ]);
    }
    assert.throws(() => authoritiesIn(damage(good[0] ?? ''), 'ca.pem'), {
      code: 'invalid',
      message: 'ca.pem has no certificate in it',
    });
  }
  assert.throws(() => authoritiesIn('', 'ca.pem'), { code: 'invalid' });
});

test('many that cannot be read are counted', async () => {
  const { cert } = await authority('a');
  const bad = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const warnings: string[] = [];
  authoritiesIn(cert + bad.repeat(40), 'ca.pem', (message) => warnings.push(message));
  assert.match(warnings[0] ?? '', /number 2 \(line \d+\), .* and 35 more cannot be read/);
});

test('a served certificate without its issuer is found out, and one that needs none is not', async () => {
  const root = await authority('root');
  const issuing = await root.below('issuing');
  const deeper = await issuing.below('deeper');
  const named = { names: ['kms.example'] };
  const fromRoot = (await root.sign(named)).cert;
  const leaf = (await issuing.sign({ ...named, issuerUrl: 'http://ca.example/issuing.der' })).cert;
  const deep = (await deeper.sign(named)).cert;
  const self = (await selfSigned(['kms.example'], 30, new Date())).cert;
  const missing = (name: string, isPublic = false) => ({ name: `CN=${name}`, isPublic });
  const table: readonly (readonly [string, ReturnType<typeof missing> | undefined])[] = [
    [self, undefined],
    [root.cert, undefined],
    [leaf, missing('issuing', true)],
    [leaf + root.cert, missing('issuing', true)],
    [leaf + issuing.cert, missing('root')],
    [leaf + issuing.cert + root.cert, undefined],
    [leaf + root.cert + issuing.cert, undefined],
    [fromRoot, missing('root')],
    [fromRoot + root.cert, undefined],
    [deep + deeper.cert, missing('issuing')],
    [deep + issuing.cert, missing('deeper')],
    [deep + deeper.cert + issuing.cert + root.cert, undefined],
    [leaf + leaf + leaf, missing('issuing', true)],
    ['', undefined],
  ];
  for (const [pem, expected] of table) assert.deepEqual(missingIssuer(pem), expected);
});

test('one that an authority of the system issued needs no more', async () => {
  const bundled = await run(`
    const [first] = (await import('node:tls')).getCACertificates('bundled');
    const { missingIssuer } = await import(${JSON.stringify(module)});
    console.log(missingIssuer(first) === undefined);
  `);
  assert.equal(bundled, 'true\n');
});

const module = new URL('../../src/platform/authorities.ts', import.meta.url).href;
const source = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);

/** Output of a process of its own, with the system's authorities in `directory`. */
async function run(code: string, directory?: string): Promise<string> {
  const own = directory === undefined ? {} : { SSL_CERT_DIR: directory, SSL_CERT_FILE: join(directory, 'ca.pem') };
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', ...own };
  const { promise, resolve } = Promise.withResolvers<string>();
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', code];
  execFile(process.execPath, args, { env, timeout: 60_000 }, (_error, stdout, stderr) => resolve(stdout + stderr));
  return promise;
}

test('every kind of connection trusts what the system trusts, and nothing else', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'kms-authorities-'));
  const [ours, other] = [await authority('ours'), await authority('other')];
  const { cert, key } = await ours.sign({ names: ['localhost', '127.0.0.1'] });
  const web = createHttps({ cert, key }, (_request, response) => response.writeHead(204).end()).listen(0);
  const log = createTls({ cert, key }, (socket) => socket.on('error', () => {}).resume()).listen(0);
  t.after(async () => {
    web.close();
    log.close();
    await rm(dir, { recursive: true });
  });
  const portOf = (server: typeof web | typeof log): number => (server.address() as AddressInfo).port;
  const [webPort, logPort] = [portOf(web), portOf(log)];
  const tenant = `{ id: 't', name: 't' }`;
  const kinds: Readonly<Record<string, string>> = {
    cli: `
      const { networkFetch } = await import(${source('cli/fetch.ts')});
      const base = 'https://localhost:${webPort}';
      await networkFetch(base, undefined)(new Request(base));`,
    oidc: `
      const { oidcClient } = await import(${source('appliance/oidc-client.ts')});
      const provider = { issuer: 'https://localhost:${webPort}', clientId: 'c', clientSecret: 's', scope: 'openid', changedAt: 0 };
      const asked = { redirectUri: 'https://kms.example', state: 's', nonce: 'n', challenge: 'c' };
      await oidcClient({ now: Date.now, elapsed: () => performance.now() }).authorizationUrl(provider, asked).catch((error) => {
        if (/\\b(?:SELF_SIGNED|UNABLE_TO)/.test(error.cause?.message)) throw error;
      });`,
    webhook: `
      const { WebhookReceiver } = await import(${source('telemetry/streaming/webhook.ts')});
      const receiver = new WebhookReceiver({ url: 'https://localhost:${webPort}/' }, { secrets: [new Uint8Array(32)], now: Date.now });
      await receiver.ready();
      await receiver.send({ tenant: ${tenant}, records: [] });
      receiver.drop();`,
    syslog: `
      const { SyslogReceiver } = await import(${source('telemetry/streaming/syslog.ts')});
      const receiver = new SyslogReceiver({ host: 'localhost', port: ${logPort}, tls: true }, { hostname: 'h' });
      await receiver.ready();
      receiver.drop();`,
    mail: `
      const { smtpMailer } = await import(${source('appliance/mail.ts')});
      const settings = { host: 'localhost', port: ${logPort}, tls: 'implicit', from: 'a@b.example' };
      const sent = smtpMailer(settings).send({ to: 'c@d.example', subject: 's', text: 't' });
      // It waits for a greeting, so the connection stands by then.
      const greeted = new Promise((resolve) => setTimeout(resolve, 1500));
      await Promise.race([sent, greeted]);`,
    postgresql: `
      const { postgresConfig } = await import(${source('platform/store-url.ts')});
      const { tls } = await postgresConfig({ url: 'postgres://u@localhost/db?sslmode=verify-full', isListed: false, env: () => undefined });
      const { connect } = await import('node:tls');
      const socket = connect({ host: 'localhost', port: ${logPort}, ...(await tls()) });
      await new Promise((resolve, reject) => socket.on('secureConnect', resolve).on('error', reject));`,
  };
  for (const [kind, code] of Object.entries(kinds)) {
    for (const [name, pem, trusts] of [
      ['ours', ours.cert, true],
      ['other', other.cert, false],
    ] as const) {
      await writeFile(join(dir, 'ca.pem'), pem);
      const said = await run(`${code}\nconsole.log('reached'); process.exit(0);`, dir);
      assert.equal(/^reached$/m.test(said), trusts, `${kind}, the system trusts ${name}: ${said.slice(0, 500)}`);
    }
  }
});

test('a system without authorities is no fault, and says nothing', async () => {
  const code = `const { trustSystem } = await import(${JSON.stringify(module)}); trustSystem(); console.log('fine');`;
  assert.equal(await run(code, '/nonexistent'), 'fine\n');
});
