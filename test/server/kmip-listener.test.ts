// KMIP over real TLS: who gets in, malformed messages, several messages at once, and the limits of a connection.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { encodeItem, enumeration, type Item, structure, text } from '../../src/dialects/kmip/ttlv.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { BodyBudget, usualBodyLimits } from '../../src/server/body-budget.ts';
import { listen } from '../../src/server/http-server.ts';
import { type KmipListener, kmipListener } from '../../src/server/kmip-listener.ts';
import { portOf } from '../../src/server/listen.ts';
import { type Serving, serve } from '../../src/server/serve.ts';
import type { AnyJson } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { type Result, requestOf, resultsOf } from '../support/kmip-client.ts';
import { hex } from '../support/vectors.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-kmip-'));
const files = { tlsCert: join(base, 'cert.pem'), tlsKey: join(base, 'key.pem') };
const { cert: ca, key: serverKey } = await selfSigned(['localhost', '127.0.0.1'], 30, new Date());
writeFileSync(files.tlsCert, ca);
writeFileSync(files.tlsKey, serverKey);
chmodSync(files.tlsKey, 0o600);

let server: Serving;
let keyid = '';
const log: string[] = [];

async function local(method: string, path: string, body?: object): Promise<AnyJson> {
  const answer = await server.appliance.fetchLocal(
    new Request(`http://localhost${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    }),
  );
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

before(async () => {
  server = await serve({
    ...{ data: join(base, 'data'), listen: '127.0.0.1:0', kmipListen: '127.0.0.1:0', logLevel: 'silent', ...files },
  });
  const { data } = await local('GET', '/auth/accounts');
  ({ keyid } = await local('POST', '/auth/apikey', { accountId: data[0].id, flags: { 'kmip.*': true } }));
});

after(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
});

interface Shown {
  readonly cert: string;
  readonly key: string;
}

async function issued(): Promise<Shown & { readonly id: string }> {
  const { certificate, privateKey, id } = await local('POST', `/auth/apikeys/${keyid}/proofs`, {
    ...{ kind: 'certificate', issue: true },
  });
  return { cert: certificate, key: privateKey, id };
}

async function shownBy(certificate: TestCertificate): Promise<Shown> {
  return { cert: certificate.chainPem, key: await certificate.keyPem() };
}

/** A connection, which gathers the bytes of answers. */
class Peer {
  readonly socket: TLSSocket;
  readonly #chunks: Buffer[] = [];
  readonly closed: Promise<void>;
  #wake: () => void = () => {};
  isClosed = false;

  constructor(port: number, shown?: Shown, more: object = {}) {
    this.socket = connect({ port, host: '127.0.0.1', ca, ...shown, ...more });
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#wake();
    });
    this.socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** The next whole answer; undefined if the connection ends before. */
  async answer(): Promise<readonly Result[] | undefined> {
    for (;;) {
      const all = Buffer.concat(this.#chunks);
      const length = all.length >= 8 ? 8 + all.readUInt32BE(4) : Number.POSITIVE_INFINITY;
      if (all.length >= length) {
        this.#chunks.splice(0, this.#chunks.length, all.subarray(length));
        return resultsOf(all.subarray(0, length));
      }
      if (this.isClosed) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async ask(operation: string, ...fields: readonly Item[]): Promise<readonly Result[] | undefined> {
    this.send(encodeItem(requestOf([{ operation, fields }])));
    return this.answer();
  }

  end(): void {
    this.socket.destroy();
  }
}

const kmipPort = (): number => Number(server.kmipAddress?.split(':').at(-1));
const query = encodeItem(requestOf([{ operation: 'Query', fields: [enumeration(tags.queryFunction, 1)] }]));

test('a client with an issued certificate works, until the proof is removed: its connection ends', async () => {
  const shown = await issued();
  const peer = new Peer(kmipPort(), shown);
  assert.equal((await peer.ask('Locate'))?.[0]?.status, 0);
  assert.equal((await peer.ask('Discover Versions'))?.[0]?.status, 0);
  await local('DELETE', `/auth/apikeys/${keyid}/proofs/${shown.id}`);
  const [after_] = (await peer.ask('Locate')) ?? [];
  assert.deepEqual([after_?.status, after_?.reason], [1, reasons.authenticationNotSuccessful]);
  await peer.closed;
  // The appliance's own authority signed it: it may still ask what the server is, and nothing else.
  const stranger = new Peer(kmipPort(), shown);
  assert.equal((await stranger.ask('Query', enumeration(tags.queryFunction, 1)))?.[0]?.status, 0);
  assert.equal((await stranger.ask('Locate'))?.[0]?.reason, reasons.authenticationNotSuccessful);
  await stranger.closed;
});

test('an API key or proof that is switched off ends open connections at their next message', async () => {
  const shown = await issued();
  const set = (active: boolean) => local('PUT', '/auth/apikeyid', { apikeyid: keyid, op: 'merge', active });
  const proof = (active: boolean) => local('PATCH', `/auth/apikeys/${keyid}/proofs/${shown.id}`, { active });
  for (const change of [set, proof]) {
    const peer = new Peer(kmipPort(), shown);
    assert.equal((await peer.ask('Locate'))?.[0]?.status, 0);
    await change(false);
    assert.equal((await peer.ask('Query'))?.[0]?.reason, reasons.authenticationNotSuccessful);
    await peer.closed;
    const fresh = new Peer(kmipPort(), shown);
    assert.equal((await fresh.ask('Locate'))?.[0]?.reason, reasons.authenticationNotSuccessful);
    await fresh.closed;
    await change(true);
  }
  const again = new Peer(kmipPort(), shown);
  assert.equal((await again.ask('Locate'))?.[0]?.status, 0);
  again.end();
});

test('strangers get nothing, and clients without a certificate neither', async () => {
  const stranger = new Peer(kmipPort(), await shownBy(await TestCertificate.alone(Date.now())));
  stranger.send(query);
  assert.equal(await stranger.answer(), undefined);
  const bare = new Peer(kmipPort());
  bare.send(query);
  assert.equal(await bare.answer(), undefined);
});

test('malformed messages are answered once, and what cannot be read on closes the connection', async () => {
  const shown = await issued();
  const cases: { name: string; request?: string; answer: string }[] = JSON.parse(
    readFileSync(new URL('../vectors/kmip/malformed.json', import.meta.url), 'utf8'),
  );
  assert.equal(cases.length, 50);
  for (const { name, request, answer: expected } of cases) {
    const bytes = request === undefined ? unwritten(name) : hex(request);
    const peer = new Peer(kmipPort(), shown);
    peer.send(bytes);
    if (expected === 'nothing') peer.socket.end();
    const results = await peer.answer();
    const [, status, reason] = /^status (\d)(?: reason (\d+))?/.exec(expected) ?? [];
    const told = results?.map((result) => [result.status, result.reason]);
    const usual = [Number(status), reason === undefined ? undefined : Number(reason)];
    const wanted = otherwise[name] ?? [usual];
    assert.deepEqual(told, status === undefined ? undefined : wanted, `${name}: ${results?.[0]?.message}`);
    if (!peer.isClosed) {
      // Whatever came before, the connection answers or is closed.
      peer.send(query);
      const next = await peer.answer();
      assert.ok(next === undefined || next.length === 1, name);
    }
    peer.end();
  }
});

/** Status and reason where this server differs from the one that was recorded. */
const otherwise: Readonly<Record<string, readonly (readonly [number, number | undefined])[]>> = {
  // A field that is there twice is malformed, whatever stands in it.
  'two protocol versions in the header': [[1, 4]],
  // The specification wants ids, but nothing needs them.
  'two items without ids': [
    [0, undefined],
    [0, undefined],
  ],
  // Both messages are answered; the first of the two is looked at here.
  'two messages in one write': [[0, undefined]],
};

/** The messages that are too long to be kept in a file. */
function unwritten(name: string): Uint8Array {
  if (name === 'nested 5000') return nested(5000);
  return name === '25,000 items' ? many(25_000) : longId();
}

function nested(levels: number): Uint8Array {
  const bytes = new Uint8Array(levels * 8);
  const view = new DataView(bytes.buffer);
  for (let level = 0; level < levels; level++) {
    view.setUint32(level * 8, level === 0 ? 0x42007801 : 0x42007901);
    view.setUint32(level * 8 + 4, (levels - level - 1) * 8);
  }
  return bytes;
}

const many = (count: number): Uint8Array =>
  encodeItem(structure(tags.requestMessage, Array(count).fill(structure(tags.requestPayload))));

const longId = (): Uint8Array =>
  encodeItem(requestOf([{ operation: 'Get', fields: [text(tags.uniqueIdentifier, 'x'.repeat(100_000))] }]));

test('several messages in one write are answered in order, and a message in many pieces', async () => {
  const peer = new Peer(kmipPort(), await issued());
  peer.send(Buffer.concat([query, query, query]));
  for (let n = 0; n < 3; n++) assert.equal((await peer.answer())?.[0]?.status, 0);
  for (const byte of query) peer.send(Uint8Array.of(byte));
  assert.equal((await peer.answer())?.[0]?.status, 0);
  peer.end();
});

test('TLS 1.2 sessions are resumed with the certificate that they began with', async () => {
  const shown = await issued();
  const first = new Peer(kmipPort(), shown, { maxVersion: 'TLSv1.2' });
  let session: Buffer | undefined;
  first.socket.on('session', (given) => {
    session = given;
  });
  assert.equal((await first.ask('Locate'))?.[0]?.status, 0);
  first.end();
  await first.closed;
  const second = new Peer(kmipPort(), shown, { maxVersion: 'TLSv1.2', session });
  assert.equal((await second.ask('Locate'))?.[0]?.status, 0);
  assert.equal(second.socket.isSessionReused(), true);
  second.end();
});

test("the API's address takes messages in HTTPS, with a certificate alone", async () => {
  const { cert, key } = await issued();
  const post = (shown: object): Promise<readonly [number | undefined, Buffer]> =>
    new Promise((resolve, reject) => {
      const sent = request(`${server.url}/kmip`, { method: 'POST', ca, ...shown }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => resolve([answer.statusCode, Buffer.concat(chunks)]));
      });
      sent.on('error', reject).end(query);
    });
  const [status, bytes] = await post({ cert, key });
  assert.equal(status, 200);
  assert.equal(resultsOf(bytes)[0]?.status, 0);
  assert.equal((await post({}))[0], 401);
});

test('KMIP is not served without TLS', async () => {
  const options = { data: join(base, 'none'), listen: '127.0.0.1:0', kmipListen: '127.0.0.1:0', logLevel: 'silent' };
  await assert.rejects(serve(options), /KMIP is served in TLS alone/);
});

interface Alone {
  readonly listener: KmipListener;
  readonly port: number;
}

/** A listener before an app that answers with the message itself. */
async function alone(
  limits: object,
  bodies = new BodyBudget(),
  told: object = {},
  { oldCiphers = false, tls = { cert: Buffer.from(ca), key: Buffer.from(serverKey) } } = {},
): Promise<Alone> {
  const noted = (fields: object, message: string) => void log.push(`${message} ${JSON.stringify(fields)}`);
  const answer = async () => ({ outcome: { status: 200, body: {}, content: answered, ...told } });
  const options = { tls, oldCiphers, bodies, logger: { info: noted, warn: noted }, limits };
  const listener = kmipListener(answer, options);
  await listen(listener.server, { port: 0, host: '127.0.0.1' });
  return { listener, port: portOf(listener.server) };
}

const answered = encodeItem(
  structure(tags.responseMessage, structure(tags.batchItem, enumeration(tags.resultStatus, 0))),
) as Uint8Array<ArrayBuffer>;

test('a message that is begun and not finished ends the connection, and so does one that is too long', async () => {
  const { listener, port } = await alone({ begun: 50, firstMessage: 1024 });
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const slow = new Peer(port, shown);
  slow.send(query.subarray(0, 20));
  await slow.closed;
  const long = new Peer(port, shown);
  long.send(hex('4200780100000800'));
  assert.equal((await long.answer())?.[0]?.reason, 4);
  await long.closed;
  await listener.end(0);
});

test('many connections at once wait for their handshakes, and all are served', async () => {
  const { listener, port } = await alone({});
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const peers = Array.from({ length: 60 }, () => new Peer(port, shown));
  for (const peer of peers) peer.send(query);
  for (const peer of peers) assert.equal((await peer.answer())?.[0]?.status, 0);
  for (const peer of peers) peer.end();
  await listener.end(0);
});

test('a client has a number of connections, and messages share a budget', async () => {
  const bodies = new BodyBudget({ ...usualBodyLimits, waiting: 200 });
  const { listener, port } = await alone({ ofOneClient: 2 }, bodies);
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const peers = [new Peer(port, shown), new Peer(port, shown)];
  for (const peer of peers) {
    peer.send(query);
    assert.equal((await peer.answer())?.[0]?.status, 0);
  }
  const third = new Peer(port, shown);
  third.send(query);
  assert.equal(await third.answer(), undefined);
  assert.match(log.at(-1) ?? '', /too many connections.*"certificate":"[0-9a-f]{64}"/);
  const [held, other] = peers;
  assert.ok(held && other);
  held.send(query.subarray(0, query.length - 1));
  while (bodies.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  other.send(query);
  assert.equal((await other.answer())?.[0]?.reason, 0x100, 'there is no room for it');
  await other.closed;
  held.end();
  await held.closed;
  while (bodies.waiting > 0) await new Promise((resolve) => setImmediate(resolve));
  await listener.end(0);
});

test('a connection is kept shortly until a message came from a client that is known', async () => {
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const short = await alone({ stranger: 50 });
  await new Peer(short.port, shown).closed;
  await short.listener.end(0);
  const sealed = await alone({ stranger: 2000 }, undefined, { status: 503, sentStatus: 200 });
  const early = new Peer(sealed.port, shown);
  early.send(query);
  await early.closed;
  await sealed.listener.end(0);
  const known = await alone({ stranger: 600_000 });
  const peer = new Peer(known.port, shown);
  peer.send(query);
  assert.equal((await peer.answer())?.[0]?.status, 0);
  peer.end();
  await known.listener.end(0);
});

test('a stranger of a known authority has few messages, and little time, whatever it asks', async () => {
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const few = await alone({ strangerMessages: 3, stranger: 600_000 }, undefined, { isToStranger: true });
  const peer = new Peer(few.port, shown);
  for (let n = 0; n < 3; n++) {
    peer.send(query);
    assert.equal((await peer.answer())?.[0]?.status, 0);
  }
  await peer.closed;
  await few.listener.end(0);
  const short = await alone({ stranger: 50 }, undefined, { isToStranger: true });
  const late = new Peer(short.port, shown);
  late.send(query);
  await late.closed;
  await short.listener.end(0);
});

test('an address has a number of connections whose clients are not known', async () => {
  const limits = { strangersOfAddress: 2, stranger: 600_000 };
  const strangers = await alone(limits, undefined, { isToStranger: true });
  const make = async () => shownBy(await TestCertificate.alone(Date.now()));
  const held = [new Peer(strangers.port, await make()), new Peer(strangers.port, await make())];
  for (const peer of held) {
    peer.send(query);
    assert.equal((await peer.answer())?.[0]?.status, 0);
  }
  const third = new Peer(strangers.port, await make());
  third.send(query);
  assert.equal(await third.answer(), undefined);
  assert.match(log.at(-1) ?? '', /too many connections from one address.*127\.0\.0\.1/);
  const other = new Peer(strangers.port, await make(), { localAddress: '127.0.0.2' });
  other.send(query);
  assert.equal((await other.answer())?.[0]?.status, 0);
  for (const peer of [...held, other]) peer.end();
  await strangers.listener.end(0);
  const clients = await alone(limits);
  const known = [];
  for (let n = 0; n < 5; n++) {
    const peer = new Peer(clients.port, await make());
    peer.send(query);
    assert.equal((await peer.answer())?.[0]?.status, 0, 'those that are known do not count');
    known.push(peer);
  }
  for (const peer of known) peer.end();
  await clients.listener.end(0);
});

test('handshakes that hang hold up neither clients that are served, nor new ones from other addresses', async () => {
  const { listener, port } = await alone({ handshake: 600_000 });
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const served = new Peer(port, shown);
  served.send(query);
  assert.equal((await served.answer())?.[0]?.status, 0);
  const hanging = [];
  for (let n = 0; n < 200; n++) {
    const socket = connectTcp({ port, host: '127.0.0.1' });
    socket.on('error', () => {});
    await once(socket, 'connect');
    // Half of them begin, and go no further.
    if (n % 2 === 0) socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
    hanging.push(socket);
    served.send(query);
    assert.equal((await served.answer())?.[0]?.status, 0);
  }
  const other = new Peer(port, shown, { localAddress: '127.0.0.2' });
  other.send(query);
  assert.equal((await other.answer())?.[0]?.status, 0);
  assert.equal(hanging[0]?.destroyed, false, 'they still hang');
  for (const socket of hanging) socket.destroy();
  for (const peer of [served, other]) peer.end();
  await listener.end(0);
});

test('hosts whose connections are silent, and many, do not keep others out', async () => {
  const { listener, port } = await alone({ handshake: 600_000 });
  const hanging: Socket[] = [];
  const openings = [];
  for (let n = 0; n < 2 * 540; n++) {
    const socket = connectTcp({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % 2)}` });
    socket.on('error', () => {});
    hanging.push(socket);
    openings.push(Promise.race([once(socket, 'connect'), once(socket, 'close')]));
  }
  await Promise.all(openings);
  const peer = new Peer(port, await shownBy(await TestCertificate.alone(Date.now())));
  peer.send(query);
  assert.equal((await peer.answer())?.[0]?.status, 0);
  for (const socket of hanging) socket.destroy();
  peer.end();
  await listener.end(0);
});

test('silent connections do not keep other clients of their address out', async () => {
  const { listener, port } = await alone({ handshake: 600_000 });
  const hanging = [];
  for (let n = 0; n < 8; n++) {
    const socket = connectTcp({ port, host: '127.0.0.1' });
    socket.on('error', () => {});
    await once(socket, 'connect');
    hanging.push(socket);
  }
  const peer = new Peer(port, await shownBy(await TestCertificate.alone(Date.now())));
  peer.send(query);
  assert.equal((await peer.answer())?.[0]?.status, 0);
  assert.ok(
    hanging.every(({ destroyed }) => !destroyed),
    'they still hang',
  );
  for (const socket of hanging) socket.destroy();
  peer.end();
  await listener.end(0);
});

/** The suite of TLS 1.2 that is agreed on; undefined if there is none. */
function suiteOf(port: number, shown: Shown, ciphers: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const more = { ciphers: `${ciphers}:@SECLEVEL=0`, maxVersion: 'TLSv1.2', rejectUnauthorized: false } as const;
    const socket = connect({ port, host: '127.0.0.1', ...shown, ...more }, () => {
      resolve(socket.getCipher().name);
      socket.destroy();
    });
    socket.on('error', () => resolve(undefined));
  });
}

test('suites without forward secrecy, or with CBC, are taken with --kmip-old-ciphers alone', async () => {
  const rsa = {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: Uint8Array.of(1, 0, 1),
    hash: 'SHA-256',
  };
  const keys = await crypto.subtle.generateKey(rsa, true, ['sign', 'verify']);
  const signing = { name: rsa.name, hash: rsa.hash };
  const own = await shownBy(await TestCertificate.alone(Date.now(), { keys, signing }));
  const tls = { cert: Buffer.from(own.cert), key: Buffer.from(own.key) };
  const shown = await shownBy(await TestCertificate.alone(Date.now()));
  const usual = ['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'];
  const old = ['ECDHE-RSA-AES256-SHA384', 'ECDHE-RSA-AES128-SHA256', 'AES256-GCM-SHA384', 'AES128-GCM-SHA256'];
  const older = ['AES256-SHA256', 'AES128-SHA256'];
  const never = ['AES256-SHA', 'AES128-SHA', 'ECDHE-RSA-AES256-SHA', 'AES128-CCM8', 'NULL-SHA256'];
  for (const oldCiphers of [false, true]) {
    const { listener, port } = await alone({}, undefined, {}, { oldCiphers, tls });
    for (const suite of usual) assert.equal(await suiteOf(port, shown, suite), suite);
    for (const suite of [...old, ...older]) {
      assert.equal(await suiteOf(port, shown, suite), oldCiphers ? suite : undefined, `${suite}, ${oldCiphers}`);
    }
    for (const suite of never) assert.equal(await suiteOf(port, shown, suite), undefined, suite);
    const [strong, ...others] = usual;
    const all = [...others, ...old, ...older, strong].join(':');
    assert.equal(await suiteOf(port, shown, all), strong, 'the strongest is taken, in whatever order they are offered');
    await listener.end(0);
  }
});
