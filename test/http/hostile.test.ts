// Limits on the cost of requests: no request of a megabyte costs more than 200 ms of the server's processor time (on a
// slow machine, than 2,000 harmless requests), whatever its credential, and no refusal is longer than 64 KiB. Every
// endpoint with a body is asked, with each kind of hostile JSON in each field, over a socket of a server in a process
// of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { sealEndpoints, unsealBody } from '../../src/api/system.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { newApiKeySecret } from '../../src/crypto/secrets.ts';
import type { Answer, Appliance, CallOptions } from '../support/appliance.ts';
import { testProvider } from '../support/oidc-provider.ts';
import { bodyWith, hostileAnything, hostileObjects, placesOf } from './hostile.ts';
import { pageOrigin, type Sample, sampled, urlOf } from './samples.ts';

/** Other load on the machine can prolong one measurement, never all. */
const tries = 4;
const longestRefusal = 64 * 1024;
const publicLimit = 16 * 1024;

const directory = mkdtempSync(join(tmpdir(), 'kms-hostile-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const data = join(directory, 'data');
const agent = new Agent({ keepAlive: true });
after(() => agent.destroy());

const { pid, url, key } = await served();

function served(): Promise<{ pid: number; url: string; key: string }> {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const args = [main, 'serve', '--data', data, '--listen', '127.0.0.1:0', '--url', pageOrigin, '--log-level', 'silent'];
  const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  after(() => child.kill('SIGKILL'));
  return new Promise((resolve, reject) => {
    let text = '';
    const look = (chunk: Buffer): void => {
      text += chunk;
      const [, url] = /listening on (http\S+) .*\n/.exec(text) ?? [];
      const [key] = /kms_[0-9A-Za-z]{49}/.exec(text) ?? [];
      if (url && key && child.pid) resolve({ pid: child.pid, url, key });
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.on('close', () => reject(new Error(text)));
  });
}

/** Milliseconds of processor time that the server has used, in steps of 10. */
function cpuTime(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function call(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> {
  const { key: bearer = key, env, headers, raw = body === undefined ? undefined : JSON.stringify(body) } = options;
  const address = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...(env?.local ? { socketPath: join(data, 'kms.sock') } : { host: address.hostname, port: address.port, agent }),
      path,
      method,
      headers: {
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(raw !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(raw) }),
        ...headers,
      },
    });
    outgoing.on('error', reject);
    outgoing.on('response', async (incoming) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const isJson = incoming.headers['content-type'] === 'application/json';
      resolve({
        status: incoming.statusCode ?? 0,
        text,
        body: isJson ? JSON.parse(text) : undefined,
        headers: new Headers(),
      });
    });
    outgoing.end(raw);
  });
}

const account = (await call('GET', '/auth/accounts')).body.data[0];
const provider = await testProvider({ redirectUris: [`${pageOrigin}/console/oidc`], people: {} });
after(() => provider[Symbol.asyncDispose]());
/** The parts of an appliance that samples need. Its identity provider is reachable. */
const appliance = {
  call(method: string, path: string, body?: object, options?: CallOptions) {
    const { issuer } = provider;
    return call(method, path, path === '/local/oidc' ? { ...body, issuer } : body, options);
  },
  root: { key, keyid: (await call('GET', '/auth/apikey')).body.data[0].keyid },
  accountId: account.id,
  world: { now: Date.now },
  advance: (milliseconds: number) => delay(milliseconds),
  async keyWith(...flags: string[]) {
    const granted = Object.fromEntries(flags.map((flag) => [flag, true]));
    return (await call('POST', '/auth/apikey', { accountId: account.id, flags: granted })).body;
  },
} as Appliance;

/**
 * Limit in milliseconds of the server's processor time, beyond that of a harmless request, which may hash a password.
 */
const mostTime = Math.max(200, 2 * (await costOfHarmless(1000)));

/** Milliseconds of the server for this many requests, after as many to warm up. */
async function costOfHarmless(count: number): Promise<number> {
  let before = 0;
  for (let n = -count; n < count; n++) {
    if (n === 0) before = cpuTime();
    await call('GET', '/auth/accounts');
  }
  return cpuTime() - before;
}

interface Attack {
  readonly endpoint: Endpoint;
  readonly sample: Sample;
  readonly raw: string;
  readonly key: string | null;
  readonly what: string;
}

/** Cost of harmless requests, by endpoint. */
const harmless = new Map<string, number>();

async function tryHarmless(endpoint: Endpoint, make: (a: Appliance) => Promise<Sample>): Promise<void> {
  const sample = await make(appliance);
  const before = cpuTime();
  await call(endpoint.method, urlOf(endpoint, sample), sample.body, { key: sample.key ?? key });
  harmless.set(endpoint.id, cpuTime() - before);
}

/** Repeats the attack until it was cheap once. */
async function isHeld({ endpoint, sample, raw, key, what }: Attack): Promise<Answer> {
  const times: number[] = [];
  const most = mostTime + (harmless.get(endpoint.id) ?? 0);
  for (;;) {
    const before = cpuTime();
    const answer = await call(endpoint.method, urlOf(endpoint, sample), undefined, { raw, key });
    const { status, text } = answer;
    times.push(cpuTime() - before);
    const last = times.at(-1) ?? 0;
    if (process.env.KMS_HOSTILE_LOG && last > 60) console.log(last, endpoint.id, what, status);
    assert.ok(status < 500, `${endpoint.id}, ${what}: ${status} ${text.slice(0, 200)}`);
    if (status >= 400) assert.ok(text.length <= longestRefusal, `${endpoint.id}, ${what}: ${text.length} bytes`);
    if (answer.body?.errors) assert.ok(Object.keys(answer.body.errors).length <= 20, `${endpoint.id}, ${what}`);
    if (last <= most) return answer;
    assert.ok(times.length < tries, `${endpoint.id}, ${what}: ${times.join(', ')} ms`);
  }
}

const unseal: Endpoint = { ...sealEndpoints.unseal, body: unsealBody };
const withBodies: readonly { readonly endpoint: Endpoint; readonly make: (a: Appliance) => Promise<Sample> }[] = [
  ...sampled.filter(({ endpoint }) => endpoint.body && endpoint.id !== 'completeSetUp'),
  { endpoint: unseal, make: async () => ({ body: { passphrase: 'x' } }) },
];
let turn = 0;

/** The next `count` values, starting over after the last. */
function inTurn<T>(all: readonly T[], count: number): T[] {
  return Array.from({ length: count }, () => all[turn++ % all.length] ?? assert.fail());
}

const unknownKey = newApiKeySecret(systemRandom);

for (const { endpoint, make } of withBodies) {
  const isPublic = endpoint.access.kind === 'public';

  test(`${endpoint.id}: a megabyte from nobody costs nothing`, async () => {
    const sample = await make(appliance);
    for (const [n, value] of inTurn(hostileObjects, 4).entries()) {
      const raw = bodyWith(sample.body ?? {}, ['unknown'], value.make());
      const key = n % 2 === 0 ? null : unknownKey;
      const { status } = await isHeld({ endpoint, sample, raw, key, what: `from nobody: ${value.name}` });
      assert.equal(status, isPublic ? 413 : 401);
    }
  });

  test(`${endpoint.id}: a megabyte from whoever may costs little`, async () => {
    await tryHarmless(endpoint, make);
    for (const { path, isFree } of placesOf(endpoint)) {
      // Fields that store any value get most attacks; other places take turns.
      for (const value of isFree ? inTurn(hostileObjects, 12) : inTurn(hostileAnything, 2)) {
        const sample = await make(appliance);
        let raw = bodyWith(sample.body ?? {}, path, value.make());
        if (isPublic) raw = raw.slice(0, publicLimit);
        await isHeld({ endpoint, sample, raw, key: sample.key ?? key, what: `${path.join('.')}: ${value.name}` });
      }
    }
    for (const value of inTurn(hostileAnything, 4)) {
      const raw = isPublic ? value.make().slice(0, publicLimit) : value.make();
      const sample = await make(appliance);
      await isHeld({ endpoint, sample, raw, key, what: `the body itself: ${value.name}` });
    }
  });
}

test('paths, queries and headers as long as they may be cost little', async () => {
  const long = 14_000;
  const texts = ['%', '%41', '&a', '&limit=1', '&limit', ';', '+', '=', '%F0%9F%94%91', '{', '-', 'kms_', '..%2f', '0'];
  const headers = [
    { cookie: 'a=b;'.repeat(long / 4) },
    { 'x-forwarded-for': '1.2.3.4,'.repeat(long / 8) },
    { 'content-type': `application/json${';charset="'.repeat(long / 10)}` },
    { 'content-type': `application/json;${' '.repeat(long)}charset=x` },
    { 'content-encoding': 'gzip,'.repeat(long / 5) },
    { authorization: `Bearer ${' '.repeat(long)}x` },
    Object.fromEntries(Array.from({ length: 1500 }, (_, n) => [`x${n}`, ''])),
  ];
  const ask = async (method: string, path: string, more: Readonly<Record<string, string>>, what: string) => {
    const times: number[] = [];
    do {
      const before = cpuTime();
      const { status, text } = await call(method, path, undefined, { raw: '{}', headers: more });
      const took = cpuTime() - before;
      // A backup costs as much as the stored data, whatever the request.
      times.push(took <= mostTime ? took : took - (await usualCost(method, path)));
      assert.ok(status < 500 && (status < 400 || text.length <= longestRefusal), `${what}: ${status} ${text.length}`);
      assert.ok(times.length < tries, `${what}: ${times.join(', ')} ms`);
    } while ((times.at(-1) ?? 0) > mostTime);
  };
  const usualCost = async (method: string, path: string): Promise<number> => {
    const before = cpuTime();
    await call(method, path.replace(/\?.*$/s, ''), undefined, { raw: '{}' });
    return cpuTime() - before;
  };
  for (const { endpoint } of sampled) {
    const plain = endpoint.path.replace(/\{\w+\}/g, 'x');
    for (const text of inTurn(texts, 3)) {
      const much = text.repeat(long / text.length);
      await ask(endpoint.method, `${plain}?id=true${much}`, {}, `${endpoint.id}?${text}`);
      await ask(endpoint.method, endpoint.path.replace(/\{\w+\}/g, much), {}, `${endpoint.id}/${text}`);
    }
    for (const more of inTurn(headers, 2)) {
      await ask(endpoint.method, plain, more, `${endpoint.id}: ${Object.keys(more).slice(0, 3)}`);
    }
  }
});

/** Sends a body in chunks of one byte; returns the answer once it is whole or the connection ends. */
function sendChunks(count: number, bearer: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.on('data', (text) => {
      answer += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
    const head = ['Host: x', `Authorization: Bearer ${bearer}`, 'Content-Type: application/json', 'Connection: close'];
    socket.write(`POST /assets/search HTTP/1.1\r\n${head.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    socket.write(`${'1\r\n \r\n'.repeat(count)}0\r\n\r\n`);
  });
}

test('a body in chunks of a byte costs little, however many there are and whoever sends it', async () => {
  for (const bearer of [key, unknownKey]) {
    const times: number[] = [];
    do {
      const before = cpuTime();
      const answer = await sendChunks(170_000, bearer);
      times.push(cpuTime() - before);
      // The server does not even discard a body this long.
      assert.ok(answer === '' || /^HTTP\/1\.1 40[01] /.test(answer), answer.slice(0, 200));
      assert.ok(times.length < tries, `${times.join(', ')} ms`);
    } while ((times.at(-1) ?? 0) > mostTime / 2);
  }
  assert.match(await sendChunks(10_000, key), /^HTTP\/1\.1 400 [\s\S]*too many pieces/);
  assert.match(await sendChunks(2_000, key), /^HTTP\/1\.1 400 [\s\S]*not valid JSON/);
});
