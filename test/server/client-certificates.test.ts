// Client certificates over real TLS: who is asked for one, and that connections which are kept open or resumed are
// judged in each request.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import type { Answer } from '../../src/http/request-log.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { endServer, httpServer, listen } from '../../src/server/http-server.ts';
import { portOf } from '../../src/server/listen.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import type { AnyJson } from '../support/appliance.ts';
import { TestCertificate, uri } from '../support/client-certificates.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-client-certificates-'));
after(() => rmSync(base, { recursive: true, force: true }));
const files = { tlsCert: join(base, 'cert.pem'), tlsKey: join(base, 'key.pem') };
const { cert: ca, key: serverKey } = await selfSigned(['localhost', '127.0.0.1'], 30, new Date());
writeFileSync(files.tlsCert, ca);
writeFileSync(files.tlsKey, serverKey, { mode: 0o600 });
chmodSync(files.tlsKey, 0o600);
const id = 'spiffe://prod.example/payroll';

async function serving(name: string, more: object = {}): Promise<Serving> {
  const options = { data: join(base, name), listen: '127.0.0.1:0', logLevel: 'silent', ...files, ...more };
  return serve(options as Parameters<typeof serve>[0]);
}

async function local(server: Serving, method: string, path: string, body?: object): Promise<AnyJson> {
  const answer = await server.appliance.fetchLocal(
    new Request(`http://localhost${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    }),
  );
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

async function newKey(server: Serving): Promise<string> {
  const { data } = await local(server, 'GET', '/auth/accounts');
  const flags = { 'keyring.list': true };
  return (await local(server, 'POST', '/auth/apikey', { accountId: data[0].id, flags })).keyid;
}

const add = (server: Serving, keyid: string, body: object): Promise<AnyJson> =>
  local(server, 'POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'certificate', ...body });

interface Shown {
  readonly cert: string;
  readonly key: string;
}

async function shownBy(certificate: TestCertificate): Promise<Shown> {
  return { cert: certificate.chainPem, key: await certificate.keyPem() };
}

interface Got {
  readonly status: number | undefined;
  readonly isResumed: boolean;
  readonly isKept: boolean;
  readonly port: number | undefined;
}

function get(url: string, agent: Agent, headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/ks/keyrings`, { agent, headers }, (answer) => {
      const { socket } = answer;
      const got = {
        status: answer.statusCode,
        isResumed: socket instanceof TLSSocket && socket.isSessionReused(),
        isKept: sent.reusedSocket,
        port: socket.localPort,
      };
      answer.resume().on('end', () => setImmediate(() => resolve(got)));
    });
    sent.on('error', reject).end();
  });
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`connections that are kept or resumed are judged in each request (${maxVersion})`, async () => {
    const server = await serving(`kept-${maxVersion}`);
    try {
      const keyid = await newKey(server);
      const now = Date.now();
      const authority = await TestCertificate.authority(now, 'CN=root');
      const below = await authority.signs({ isAuthority: true, subject: 'CN=below' });
      const program = await shownBy(await below.signs({ names: [uri(id)] }));
      const kept = new Agent({ keepAlive: true, maxSockets: 1, ca, ...program, maxVersion });
      const before = await get(server.url, kept);
      assert.equal(before.status, 401);
      const proof = await add(server, keyid, { ca: authority.pem, san: id });
      // The connection of before was never asked: the refusal closes it, and no session of it is resumed.
      assert.equal((await get(server.url, kept)).status, 401);
      const asked = await get(server.url, kept);
      assert.deepEqual([asked.status, asked.isResumed], [200, false]);
      const again = await get(server.url, kept);
      assert.deepEqual([again.status, again.isKept, again.port], [200, true, asked.port]);
      // Resumed connections have the client's own certificate alone: those between are remembered.
      const resuming = new Agent({ keepAlive: false, ca, ...program, maxVersion });
      assert.equal((await get(server.url, resuming)).status, 200);
      const resumed = await get(server.url, resuming);
      assert.deepEqual([resumed.status, resumed.isResumed], [200, true]);

      const path = `/auth/apikeys/${keyid}/proofs/${proof.id}`;
      await add(server, keyid, { certificate: (await TestCertificate.alone(now)).pem });
      await local(server, 'PATCH', path, { active: false });
      const open = await get(server.url, kept);
      assert.deepEqual([open.status, open.isKept, open.port], [401, true, asked.port]);
      const other = await get(server.url, resuming);
      assert.deepEqual([other.status, other.isResumed], [401, true]);
      await local(server, 'PATCH', path, { active: true });
      assert.equal((await get(server.url, kept)).status, 200);
      await local(server, 'DELETE', path);
      const last = await get(server.url, kept);
      assert.deepEqual([last.status, last.isKept, last.port], [401, true, asked.port]);
      assert.equal((await get(server.url, resuming)).status, 401);
      kept.destroy();
    } finally {
      await server.close();
    }
  });
}

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a resumed session keeps its chain, whatever other connections have sent (${maxVersion})`, async () => {
    const server = await serving(`resumed-${maxVersion}`);
    try {
      const keyid = await newKey(server);
      const authority = await TestCertificate.authority(Date.now(), 'CN=root');
      await add(server, keyid, { ca: authority.pem, san: id });
      const below = await authority.signs({ isAuthority: true, subject: 'CN=below' });
      const program = await below.signs({ names: [uri(id)] });
      const whole = await shownBy(program);
      const other = await authority.signs({ isAuthority: true, subject: 'CN=other' });
      const shownToo = { bare: program.pem, another: program.pem + other.pem };
      const resuming = new Agent({ keepAlive: false, ca, ...whole, maxVersion });
      assert.equal((await get(server.url, resuming)).status, 200);
      for (const [what, cert] of Object.entries(shownToo)) {
        const full = await get(server.url, new Agent({ keepAlive: false, ca, ...whole, cert, maxVersion }));
        assert.deepEqual([full.status, full.isResumed], [401, false], `${what}: what others sent is not its own`);
        const resumed = await get(server.url, resuming);
        assert.deepEqual([resumed.status, resumed.isResumed], [200, true], what);
      }
    } finally {
      await server.close();
    }
  });
}

test('an issued certificate works at all listeners with TLS, and others get in without one', async () => {
  const server = await serving('issued', { vaultListen: '127.0.0.1:0' });
  try {
    const keyid = await newKey(server);
    const { certificate, privateKey } = await add(server, keyid, { issue: true });
    const own = new Agent({ ca, cert: certificate, key: privateKey });
    assert.equal((await get(server.url, own)).status, 200);
    assert.equal((await get(server.url, new Agent({ ca }))).status, 401);
    const { status, body } = await new Promise<AnyJson>((resolve, reject) => {
      const sent = request(`${server.vaultAddress}/v1/auth/cert/login`, { agent: own, method: 'PUT' }, (answer) => {
        let text = '';
        answer.on('data', (part) => (text += part)).on('end', () => resolve({ status: answer.statusCode, body: text }));
      });
      sent.on('error', reject).end('{}');
    });
    assert.equal(status, 200, body);
    assert.match(JSON.parse(body).auth.client_token, /^kmswt_/);
    const stranger = await shownBy(await TestCertificate.alone(Date.now()));
    assert.equal((await get(server.url, new Agent({ ca, ...stranger }))).status, 401);
    const wrong = { ...stranger, cert: certificate };
    await assert.rejects(get(server.url, new Agent({ ca, ...wrong })), 'a certificate without its key');
  } finally {
    await server.close();
  }
});

test('clients are asked for a certificate only while one is wanted', async () => {
  let isWanted = false;
  const seen: boolean[] = [];
  const answer: Answer = async (request) => {
    seen.push(request.certificate !== undefined);
    return { outcome: { status: 200, body: {} } };
  };
  const tls = { cert: Buffer.from(ca), key: Buffer.from(serverKey) };
  const server = httpServer(answer, { tls, asksCertificates: () => isWanted, origin: () => ({}) });
  await listen(server, { host: '127.0.0.1', port: 0 });
  try {
    const url = `https://127.0.0.1:${portOf(server)}`;
    const shown = await shownBy(await TestCertificate.alone(Date.now()));
    // One cache of sessions, as a program has it: none of those without a certificate may be resumed later.
    const agent = new Agent({ keepAlive: false, ca, ...shown });
    for (isWanted of [false, true, true, false, false]) await get(url, agent);
    for (isWanted of [false, true]) await get(url, new Agent({ ca, ...shown }));
    for (isWanted of [true]) await get(url, new Agent({ ca }));
    assert.deepEqual(seen, [false, true, true, true, true, false, true, false]);
  } finally {
    await endServer(server);
  }
});

test('behind a proxy no certificate counts, neither of the connection nor of a header', async () => {
  const server = await serving('proxied', { behindProxy: true });
  try {
    const keyid = await newKey(server);
    const { certificate, privateKey } = await add(server, keyid, { issue: true });
    const own = new Agent({ ca, cert: certificate, key: privateKey });
    assert.equal((await get(server.url, own)).status, 401);
    const named = encodeURIComponent(certificate);
    const headers = { 'X-Forwarded-Client-Cert': `Cert="${named}"`, 'X-SSL-Client-Cert': named, 'Client-Cert': named };
    assert.equal((await get(server.url, own, headers)).status, 401);
  } finally {
    await server.close();
  }
});
