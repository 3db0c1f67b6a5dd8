// Processor time of a single request without a credential, at each listener: 15 kB of input that is hard on parsers, in
// the target and in each header that is parsed. It is CPU time of the event loop's thread, the minimum of several
// tries, so other load on the machine does not count.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type NetConnectOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { socketFile } from '../../src/platform/data-dir.ts';
import { serve } from '../../src/server/serve.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-cost-'));
after(() => rmSync(base, { recursive: true, force: true }));

/** Bytes of repeated input: with the rest of its head a request stays below the limit of 16 KiB. */
const long = 15_000;
/** Milliseconds. An ordinary request takes less than 1; work that is quadratic in 15 kB took 50 to 300. */
const most = 15;
/** Tries, of which the cheapest counts: a crowded processor makes CPU time longer, too. */
const tries = 20;

const pieces = [
  ...['/', '/a', '/sign/a', '/%61', '/..', '//a', '\\', ',', ', ', 'a,', ' ', '\t', 'a ', '.', 'a.', '-'],
  ...['%', '%2F', '%zz', '=', '&a=a', ';', ';charset="', ':', ':0', '0', '"', '[', '@', 'a', 'kms_', '\xfc'],
];
/** Endings that may make a pattern fail, so that it backtracks over everything before. */
const tails = ['', '!', ' ', '""a'];

/** Prefixes before the repeated input, for parsers that look for something after them. */
const headers: Readonly<Record<string, readonly string[]>> = {
  Host: ['', 'a:', '['],
  'X-Forwarded-Host': ['', '['],
  'X-Forwarded-For': ['', '"[', '1'],
  'X-Forwarded-Proto': [''],
  Forwarded: ['', 'for='],
  Authorization: ['', 'Bearer ', 'bearer', 'Basic '],
  'X-Vault-Token': ['', 'kms_'],
  'X-Vault-Namespace': ['', '/'],
  'X-Vault-Request': [''],
  'X-Vault-Wrap-TTL': ['', '1'],
  'X-Vault-Wrap-Format': [''],
  'X-Vault-Policy-Override': [''],
  'X-Vault-MFA': ['', 'a:'],
  Cookie: ['', 'kms=', '__Host-'],
  'Kms-Console': [''],
  'Kms-Tenant': [''],
  Origin: ['', 'http://', 'https://['],
  'Sec-Fetch-Site': [''],
  Accept: ['', 'text/html'],
  'Accept-Encoding': ['', 'gzip'],
  'Accept-Language': [''],
  'Content-Type': ['', 'application/json', 'application/json;charset='],
  'Content-Encoding': ['', 'identity'],
  'Content-Length': ['', '1'],
  'Transfer-Encoding': ['', 'chunked'],
  Connection: ['', 'close'],
  Upgrade: [''],
  TE: [''],
  Expect: ['', '100-continue'],
  Range: ['', 'bytes='],
  'If-None-Match': ['', '"'],
  'If-Modified-Since': [''],
  traceparent: ['', '00-'],
  tracestate: [''],
  'User-Agent': [''],
  Via: [''],
};

/** Methods and beginnings of targets. */
const targets: readonly (readonly [method: string, start: string])[] = [
  ['GET', '/'],
  ['POST', '/v1'],
  ['GET', '/v1/'],
  ['GET', '/v1/sys/'],
  ['PUT', '/v1/auth/'],
  ['GET', '/v1/transit/keys?list=true&'],
  ['LIST', '/v1/'],
  ['LIST', '/v1/a?'],
  ['GET', '/adv/'],
  ['POST', '/rec/'],
  ['GET', '//'],
  ['GET', '/ks/hash/'],
  ['GET', '/assets/search?'],
  ['GET', '/console/'],
  ['GET', '/docs/'],
  ['GET', 'http://'],
  ['GET', 'http://a/'],
  ['OPTIONS', '*'],
  ['CONNECT', ''],
];

/** Requests of each listener whose headers are parsed. */
const lines: Readonly<Record<string, readonly string[]>> = {
  network: ['POST /auth/basic/login', 'GET /ks/keyrings', 'GET /nowhere', 'GET /console'],
  transit: ['PUT /v1/transit/encrypt/a', 'PUT /v1/auth/approle/login'],
  tang: ['GET /adv/a', 'POST /rec/a'],
  socket: ['POST /auth/basic/login'],
};

const filled = (piece: string, length: number): string =>
  piece.repeat(Math.ceil(length / piece.length)).slice(0, length);

/** A request's head for each input to try, of about `length` bytes. */
function* heads(listener: string, length: number): Generator<readonly [name: string, head: string]> {
  for (const piece of pieces) {
    for (const tail of tails) {
      const value = `${filled(piece, length)}${tail}`;
      const shown = JSON.stringify(`${piece}…${tail}`);
      for (const [method, start] of targets) {
        const head = `${method} ${start}${value} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
        yield [`${method} ${start} and ${shown}`, head];
      }
      // A pattern that matches to the end does not backtrack.
      if (tail === '' || tail === ' ') continue;
      for (const line of lines[listener] ?? []) {
        for (const [header, starts] of Object.entries(headers)) {
          for (const start of starts) {
            const host = header === 'Host' ? '' : 'Host: a\r\n';
            const head = `${line} HTTP/1.1\r\n${host}${header}: ${start}${value}\r\nConnection: close\r\n\r\n`;
            yield [`${header}: ${start} and ${shown} with ${line}`, head];
          }
        }
      }
    }
  }
}

function asked(at: NetConnectOpts, head: string, patience = 100): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(at, () => socket.write(head, 'latin1'));
    // The beginning of an answer suffices.
    socket.on('data', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    // Some wait for more: a body, or the rest of a line.
    socket.setTimeout(patience, () => socket.destroy());
  });
}

/** Milliseconds, the minimum of several tries; stops at the first cheap one. */
async function costOf(at: NetConnectOpts, head: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < tries && least > most; n++) {
    const before = process.threadCpuUsage();
    await asked(at, head);
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

const data = join(base, 'data');
const anywhere = '127.0.0.1:0';
const serving = await serve({
  data,
  listen: anywhere,
  vaultListen: anywhere,
  tangListen: anywhere,
  behindProxy: true,
  logLevel: 'silent',
});
after(() => serving.close());

const portAt = (url = ''): NetConnectOpts => ({ host: '127.0.0.1', port: Number(new URL(url).port) });
const listeners: Readonly<Record<string, NetConnectOpts>> = {
  network: portAt(serving.address),
  transit: portAt(serving.vaultAddress),
  tang: portAt(serving.tangAddress),
  socket: { path: join(data, socketFile) },
};

for (const [listener, at] of Object.entries(listeners)) {
  test(`no request without a credential takes much of the processor: ${listener}`, async () => {
    // The first request of its kind may create files and load modules.
    for (const line of lines[listener] ?? []) {
      await asked(at, `${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, 60_000);
    }
    const dear: string[] = [];
    for (const [name, head] of heads(listener, long)) {
      const cost = await costOf(at, head);
      if (cost <= most) continue;
      // Reports the cost at half the length: only a linear cost halves.
      const [, half = ''] = [...heads(listener, long / 2)].find(([other]) => other === name) ?? [];
      dear.push(`${name}: ${cost} ms, ${await costOf(at, half)} ms of half as much`);
      assert.ok(dear.length < 20, dear.join('\n'));
    }
    assert.deepEqual(dear, []);
  });
}

/** Combining marks: normalising their text takes time quadratic in their number. */
const marks = ['\u0345', '\u035d', '\u035c', '\u0301', '\u0327', '\u0334'].map((mark) => mark.repeat(1300)).join('');

test('nor does a name of many characters that combine', async () => {
  const bodies: readonly (readonly [listener: string, line: string, body: object])[] = [
    ['network', 'POST /auth/basic/login', { username: marks, password: 'x' }],
    ['network', 'POST /auth/basic/login', { username: `@${marks}`, password: 'x' }],
    ['network', 'POST /auth/basic/reset-password-start', { email: `${marks}@b.example` }],
    ['transit', 'PUT /v1/auth/approle/login', { role_id: marks, secret_id: 'x' }],
  ];
  for (const [listener, line, body] of bodies) {
    const bytes = Buffer.from(JSON.stringify(body));
    const type = `Content-Type: application/json\r\nContent-Length: ${bytes.length}`;
    const head = `${line} HTTP/1.1\r\nHost: a\r\n${type}\r\nConnection: close\r\n\r\n`;
    const whole = head + bytes.toString('latin1');
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0; n < tries && least > most; n++) {
      const before = process.threadCpuUsage();
      await asked(listeners[listener] ?? { port: 0 }, whole, 60_000);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    assert.ok(least <= most, `${line}: ${least} ms`);
  }
});
