// Keys that issuers of signed tokens publish: where they are asked for and how often, what is refused, and what holds
// while an issuer is away.
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { test } from 'node:test';
import { IssuerKeys } from '../../src/appliance/issuer-keys.ts';
import { tokenVerifier } from '../../src/appliance/token-verifier.ts';
import type { TokenVerdict } from '../../src/core/proofs/token-verifier.ts';
import { KmsError } from '../../src/errors.ts';
import { checkedTrust, type Trust } from '../../src/model/trust.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { authority } from '../support/certificates.ts';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { jsonHead, oddHttp, oddServer } from '../support/odd-server.ts';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];

/** A published issuer: its documents by path, each an answer or a function that answers. */
interface Published {
  readonly url: string;
  /** Paths that were asked for. */
  readonly asked: string[];
  readonly documents: Record<string, unknown>;
  /** Answers 503 from now on, or no longer. */
  away: boolean;
  [Symbol.dispose](): void;
}

async function published(scheme: 'https' | 'http' = 'https', host = 'localhost'): Promise<Published> {
  const answer: RequestListener = (request, response) => {
    const path = String(request.url);
    it.asked.push(path);
    const document = it.documents[path];
    if (it.away || document === undefined) return void response.writeHead(it.away ? 503 : 404).end();
    if (typeof document === 'function') return void document(response);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  };
  const server: Server =
    scheme === 'https' ? createTlsServer({ cert: certificate, key: privateKey }, answer) : createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Cast: a server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo;
  const it: Published = {
    url: `${scheme}://${host}:${port}`,
    asked: [],
    documents: {},
    away: false,
    [Symbol.dispose]: () => server.close(),
  };
  return it;
}

const trustIn = (issuer: string, more: object = {}, isPrivateAllowed = true): Trust =>
  checkedTrust({ issuer, audience: 'kms', subject: 'build', ...more }, isPrivateAllowed);

const discovery = '/.well-known/openid-configuration';

/** An issuer with its keys at `/keys`, a clock, and the verifier of an appliance. */
async function around(scheme: 'https' | 'http' = 'https') {
  const world = { at: 1_800_000_000_000, now: () => world.at, elapsed: () => world.at - 1_800_000_000_000 };
  const at = await published(scheme);
  const issuer = await TokenIssuer.make(world.now, at.url);
  at.documents[discovery] = { issuer: at.url, jwks_uri: `${at.url}/keys` };
  at.documents['/keys'] = issuer.jwks;
  const verifier = tokenVerifier(world);
  const trust = trustIn(at.url, scheme === 'https' ? { ca: certificate } : {});
  return { world, at, issuer, verifier, trust, [Symbol.dispose]: () => at[Symbol.dispose]() };
}

const checkOf = (verdict: TokenVerdict): string => ('misfit' in verdict ? verdict.misfit.check : 'none');

/** The reason for which keys cannot be had. */
async function whyNot(asked: Promise<unknown>): Promise<string> {
  const error: unknown = await asked.then(
    () => assert.fail('expected a refusal'),
    (problem) => problem,
  );
  assert.ok(error instanceof KmsError && error.code === 'unavailable', String(error));
  assert.match(error.message, /^the keys of \S+ cannot be had now: try again later$/);
  return error.logReason ?? '';
}

for (const scheme of ['https', 'http'] as const) {
  test(`keys are found by discovery, over ${scheme}, and asked for once an hour`, async () => {
    using a = await around(scheme);
    const { world, at, issuer, verifier, trust } = a;
    const logins = Array.from({ length: 20 }, async () => verifier.verify(await issuer.token(), trust));
    for (const verdict of await Promise.all(logins)) assert.equal(checkOf(verdict), 'none');
    assert.deepEqual(at.asked, [discovery, '/keys'], 'many at once ask once');
    world.at += hour;
    assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
    assert.equal(at.asked.length, 2);
    world.at += second;
    assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
    assert.equal(at.asked.length, 4);
  });
}

test('an issuer with a path is asked below it, and an address of keys is asked alone', async () => {
  using at = await published();
  const world = { now: Date.now, elapsed: () => 1 };
  for (const end of ['', '/']) {
    const name = `${at.url}/realms/acme${end}`;
    const issuer = await TokenIssuer.make(world.now, name);
    at.documents[`/realms/acme${discovery}`] = { issuer: name, jwks_uri: `${at.url}/certs` };
    at.documents['/certs'] = issuer.jwks;
    at.asked.splice(0);
    const keys = await new IssuerKeys(world).of(trustIn(name, { ca: certificate }));
    assert.equal(keys.keys.length, 1);
    assert.deepEqual(at.asked, [`/realms/acme${discovery}`, '/certs']);
  }
  at.asked.splice(0);
  await new IssuerKeys(world).of(trustIn('https://ci.example.org', { ca: certificate, jwksUrl: `${at.url}/certs` }));
  assert.deepEqual(at.asked, ['/certs']);
  // A bundle of a trust domain may come from an agent on this machine.
  using here = await published('http', '127.0.0.1');
  here.documents['/bundle'] = at.documents['/certs'];
  const bundle = trustIn('spiffe://acme', { subject: 'spiffe://acme/ci', jwksUrl: `${here.url}/bundle` });
  assert.equal((await new IssuerKeys(world).of(bundle)).keys.length, 1);
});

test('an unknown key is looked for at most once a minute, and found once it is published', async () => {
  using a = await around();
  const { world, at, issuer, verifier, trust } = a;
  const next = await TokenIssuer.make(world.now, at.url);
  const token = () => next.token({}, { kid: 'two' });
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
  const rounds = () => at.asked.filter((path) => path === '/keys').length;
  for (let n = 0; n < 10; n++) assert.equal(checkOf(await verifier.verify(await token(), trust)), 'keys');
  assert.equal(rounds(), 1, 'the keys have just been asked for');
  world.at += minute;
  for (let n = 0; n < 10; n++) assert.equal(checkOf(await verifier.verify(await token(), trust)), 'keys');
  assert.equal(rounds(), 2);
  at.documents['/keys'] = { keys: [...issuer.jwks.keys, ...next.jwks.keys.map((key) => ({ ...key, kid: 'two' }))] };
  world.at += minute - second;
  assert.equal(checkOf(await verifier.verify(await token(), trust)), 'keys');
  world.at += second;
  assert.equal(checkOf(await verifier.verify(await token(), trust)), 'none');
  assert.equal(rounds(), 3);
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
});

test('a key that is no longer published verifies nothing an hour later', async () => {
  using a = await around();
  const { world, at, issuer, verifier, trust } = a;
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
  const next = await TokenIssuer.make(world.now, at.url);
  at.documents['/keys'] = { keys: next.jwks.keys.map((key) => ({ ...key, kid: 'two' })) };
  world.at += hour + second;
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'keys');
  assert.equal(checkOf(await verifier.verify(await next.token({}, { kid: 'two' }), trust)), 'none');
});

test('keys of an issuer that is away are good for a day, and it is asked once a minute until it is back', async () => {
  using a = await around();
  const { world, at, issuer, verifier, trust } = a;
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
  at.away = true;
  world.at += day - second;
  at.asked.splice(0);
  for (let n = 0; n < 5; n++) assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
  assert.deepEqual(at.asked, [discovery]);
  world.at += second;
  assert.equal(await whyNot(verifier.verify(await issuer.token(), trust)), 'the identity provider answered 503');
  at.away = false;
  await whyNot(verifier.verify(await issuer.token(), trust));
  world.at += minute;
  assert.equal(checkOf(await verifier.verify(await issuer.token(), trust)), 'none');
});

test('what an issuer must not publish is refused, with the reason', async () => {
  using a = await around();
  const { at, issuer, trust } = a;
  using clear = await published('http', '127.0.0.1');
  clear.documents['/keys'] = issuer.jwks;
  const send = (status: number, body: string, headers: Record<string, string> = {}) => {
    return (response: AnyJson) => response.writeHead(status, headers).end(body);
  };
  const redirect = send(302, '', { location: `${at.url}/keys` });
  const many = Array.from({ length: 101 }, () => issuer.jwks.keys[0]);
  const rows: readonly (readonly [what: string, path: string, document: unknown, why: RegExp])[] = [
    [
      'another issuer',
      discovery,
      { issuer: `${at.url}/`, jwks_uri: `${at.url}/keys` },
      /document names another issuer/,
    ],
    ['no issuer', discovery, { jwks_uri: `${at.url}/keys` }, /has no issuer or no jwks_uri/],
    ['no address of keys', discovery, { issuer: at.url }, /has no issuer or no jwks_uri/],
    ['no document', discovery, undefined, /the issuer answered 404/],
    ['a redirect', discovery, redirect, /answered 302, a redirect, which is not followed/],
    ['a redirect of the keys', '/keys', redirect, /answered 302, a redirect, which is not followed/],
    ['a page', discovery, send(200, '<html>'), /answered something other than JSON/],
    ['too much', '/keys', send(200, ' '.repeat(1_048_577)), /answered more than 1048576 bytes/],
    ['too many keys', '/keys', { keys: many }, /expected a JSON Web Key Set of at most 100 keys/],
    ['no set', '/keys', [], /expected a JSON Web Key Set/],
    ['a private key', '/keys', { keys: [{ kty: 'EC', d: 'x' }] }, /private or secret key/],
    ['a secret key', '/keys', { keys: [{ kty: 'oct', k: 'x' }] }, /private or secret key/],
    ['keys in clear', discovery, { issuer: at.url, jwks_uri: `${clear.url}/keys` }, /expected https, got http:/],
    ['keys in a file', discovery, { issuer: at.url, jwks_uri: 'file:///etc/passwd' }, /expected https, got file:/],
    ['no address at all', discovery, { issuer: at.url, jwks_uri: 'keys' }, /Invalid URL/],
    ['an error', '/keys', send(500, '{}'), /answered 500/],
    ['a refusal', '/keys', send(403, '{}'), /the issuer answered 403/],
  ];
  for (const [what, path, document, why] of rows) {
    const before = at.documents[path];
    at.documents[path] = document;
    assert.match(await whyNot(new IssuerKeys({ elapsed: () => 1 }).of(trust)), why, what);
    at.documents[path] = before;
  }
  assert.deepEqual(clear.asked, []);
  const other = (await authority('other')).cert;
  assert.match(await whyNot(new IssuerKeys({ elapsed: () => 1 }).of({ ...trust, ca: other })), /certificate/);
  const { ca: _, ...publicOnly } = trust;
  assert.match(await whyNot(new IssuerKeys({ elapsed: () => 1 }).of(publicOnly)), /self-signed certificate/);
  assert.equal((await new IssuerKeys({ elapsed: () => 1 }).of(trust)).keys.length, 1);
});

for (const [what, say] of Object.entries(oddHttp)) {
  test(`an issuer that answers ${what} holds nobody for long`, async () => {
    const server = await oddServer();
    try {
      server.say = say;
      const trust = trustIn(`http://127.0.0.1:${server.port}`);
      const keys = new IssuerKeys({ elapsed: () => performance.now() }, 300);
      const began = performance.now();
      const reasons = await Promise.all(Array.from({ length: 10 }, () => whyNot(keys.of(trust))));
      assert.ok(performance.now() - began < 5000, `${performance.now() - began} ms`);
      for (const reason of reasons) assert.match(reason, /^[^\n]{5,200}$/);
      assert.ok(server.sent() < 16 << 20, `${server.sent()} bytes`);
    } finally {
      server.close();
    }
  });
}

test('an issuer that is slow is told as such', async () => {
  const server = await oddServer();
  try {
    server.say = (socket) => socket.write(`${jsonHead}content-length: 9\r\n\r\n{`);
    const keys = new IssuerKeys({ elapsed: () => 1 }, 200);
    assert.equal(
      await whyNot(keys.of(trustIn(`http://127.0.0.1:${server.port}`))),
      'no whole answer came within 0.2 s',
    );
  } finally {
    server.close();
  }
});

test('private addresses are asked only for those who run the appliance', async () => {
  using here = await published('http', '127.0.0.1');
  const port = new URL(here.url).port;
  const isPrivate = /^\S+ is a private address, which only the operator may have asked for keys$/;
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a00:1]',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.168.1.1',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '[::]',
  ]) {
    const url = `https://${host}:${port}/keys`;
    const trust = trustIn('https://ci.example.org', { jwksUrl: url, ca: certificate }, false);
    assert.match(await whyNot(new IssuerKeys({ elapsed: () => 1 }).of(trust)), isPrivate, host);
  }
  const issuer = trustIn(here.url, {}, false);
  assert.match(await whyNot(new IssuerKeys({ elapsed: () => 1 }).of(issuer)), isPrivate);
  assert.deepEqual(here.asked, []);
});

const test503 = (a: Appliance, keyid: string, token: string, options: AnyJson) =>
  a.call('POST', `/auth/apikeys/${keyid}/proof-test`, { token }, options);

test('a login waits for nothing that only others may have asked for, and a test of its token says why', async () => {
  const a = await testAppliance({
    tenants: [
      { name: 'default', hosts: ['*'] },
      { name: 'other', hosts: ['other.test'] },
    ],
  });
  const [, other] = a.tenants;
  assert.ok(other);
  using here = await published('http', '127.0.0.1');
  const issuer = await TokenIssuer.make(() => a.world.now(), here.url);
  here.documents[discovery] = { issuer: here.url, jwks_uri: `${here.url}/keys` };
  here.documents['/keys'] = issuer.jwks;
  const login = async (keyid: string, options: AnyJson) =>
    a.call('POST', '/auth/workload/login', { token: await issuer.token(), role: keyid }, { ...options, key: null });

  // Added in the operator's tenant by a caller who may do everything there.
  const key = await a.keyWith('keyring.list');
  await trustIssuer(a, key.keyid, issuer, { jwks: undefined });
  assert.equal((await login(key.keyid, {})).status, 200);
  here.asked.splice(0);

  const theirs = { key: other.root.key, host: 'other.test' };
  const body = { kind: 'jwt', issuer: here.url, audience: 'kms', subject: 'build' };
  const added = await a.call('POST', `/auth/apikeys/${other.root.keyid}/proofs`, body, theirs);
  assert.equal(added.status, 200, added.text);
  const refused = await login(other.root.keyid, { host: 'other.test' });
  assert.equal(refused.status, 503);
  assert.equal(refused.body.message, `the keys of ${here.url} cannot be had now: try again later`);
  const tested = await test503(a, other.root.keyid, await issuer.token(), theirs);
  assert.deepEqual(tested.body.proofs[0].steps, [
    { check: 'issuer', ok: true },
    { check: 'form', ok: true },
    {
      check: 'keys',
      ok: false,
      reason: 'they cannot be had now: 127.0.0.1 is a private address, which only the operator may have asked for keys',
    },
  ]);
  assert.deepEqual(here.asked, []);

  // Nor by somebody in the operator's tenant who may do less.
  const weak = await a.keyWith('apikey.update', 'apikey.read', 'keyring.list');
  const mine = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body, { key: weak.key });
  assert.equal(mine.status, 200, mine.text);
  assert.equal((await login(mine.body.id, {})).status, 503);
  assert.deepEqual(here.asked, []);
});
