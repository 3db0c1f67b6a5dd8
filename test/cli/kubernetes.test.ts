// `kms kubernetes-plugin`, called through Node's own HTTP/2, and with the exact bytes that the official client of
// k8s.io/kms sent.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rename, stat, symlink, writeFile } from 'node:fs/promises';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, createServer, type Socket } from 'node:net';
import test, { type TestContext } from 'node:test';
import fc from 'fast-check';
import {
  encryptResponse,
  kmsCalls,
  readDecryptRequest,
  readEncryptRequest,
  statusResponse,
} from '../../src/client/kubernetes-kms.ts';
import { KmsError } from '../../src/errors.ts';
import type { Ran, RunOptions } from './kms.ts';
import { keyAnswers, type ServedDesk, servedDesk } from './served.ts';

interface Plugin {
  readonly path: string;
  readonly session: ClientHttp2Session;
  /** Its output so far. */
  said(): string;
  /** Resolves once its output contains `text`. */
  saying(text: string): Promise<void>;
  /** Ends it as SIGTERM does. */
  stop(): Promise<Ran>;
  /** Resolves once it ends by itself. */
  readonly ended: Promise<Ran>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Rejects if it ends before it listens. */
async function plugin(d: ServedDesk, options: RunOptions & { args?: readonly string[] } = {}): Promise<Plugin> {
  const path = d.path('kubernetes.sock');
  const end = new AbortController();
  let said = '';
  const heard = new Set<() => void>();
  const saying = (text: string): Promise<void> =>
    new Promise((resolve) => {
      const look = () => said.includes(text) && heard.delete(look) && resolve();
      heard.add(look);
      look();
    });
  const ran = d.kms([...(options.args ?? []), 'kubernetes-plugin', '--ring', 'etcd', '--listen', `unix://${path}`], {
    ...options,
    signal: end.signal,
    onStderr(text) {
      said += text;
      for (const look of heard) look();
    },
  });
  await Promise.race([saying('listening on unix://'), ran.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
  const session = connectHttp2('http://localhost', { createConnection: () => connectSocket(path) });
  session.on('error', () => undefined);
  const stop = (): Promise<Ran> => {
    end.abort('SIGTERM');
    return ran;
  };
  return {
    path,
    session,
    said: () => said,
    saying,
    stop,
    ended: ran,
    async [Symbol.asyncDispose]() {
      session.destroy();
      await stop();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly said: string;
  readonly message: Buffer | undefined;
}

const framed = (message: Uint8Array, compressed = 0): Buffer => {
  const head = Buffer.of(compressed, 0, 0, 0, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

function ask({ session }: Pick<Plugin, 'session'>, path: string, body: Uint8Array, timeout?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(timeout !== undefined && { 'grpc-timeout': timeout }),
    });
    const chunks: Buffer[] = [];
    let trailers: Readonly<Record<string, string | string[] | undefined>> = {};
    stream.on('response', (headers) => {
      assert.deepEqual([headers[':status'], headers['content-type']], [200, 'application/grpc']);
    });
    stream.on('trailers', (headers) => {
      trailers = headers;
    });
    stream.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    stream.on('error', reject);
    stream.on('end', () => {
      const bytes = Buffer.concat(chunks);
      if (bytes.length > 0) assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
      resolve({
        status: Number(trailers['grpc-status']),
        said: decodeURIComponent(String(trailers['grpc-message'] ?? '')),
        message: bytes.length > 0 ? bytes.subarray(5) : undefined,
      });
    });
    stream.end(body);
  });
}

/** Fields of a protobuf message; all of ours are shorter than 16 KiB. */
function fields(message: Buffer | undefined): ReadonlyMap<number, Buffer> {
  const found = new Map<number, Buffer>();
  const bytes = message ?? assert.fail('no message');
  for (let at = 0; at < bytes.length; ) {
    const number = (bytes[at++] ?? 0) >>> 3;
    let length = bytes[at++] ?? 0;
    if (length >= 0x80) length = (length & 0x7f) | ((bytes[at++] ?? 0) << 7);
    found.set(number, bytes.subarray(at, at + length));
    at += length;
  }
  return found;
}

function message(...values: readonly (readonly [number: number, value: Uint8Array | string])[]): Buffer {
  return Buffer.concat(
    values.flatMap(([number, value]) => {
      const bytes = Buffer.from(value);
      const { length } = bytes;
      const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >>> 7];
      return [Buffer.of((number << 3) | 2, ...size), bytes];
    }),
  );
}

const status = (it: Pick<Plugin, 'session'>) => ask(it, kmsCalls.status, framed(Buffer.of()));
const encrypt = (it: Plugin, plaintext: Uint8Array) =>
  ask(it, kmsCalls.encrypt, framed(message([1, plaintext], [2, 'uid'])));
const decrypt = (it: Plugin, ciphertext: Uint8Array, keyId: string) =>
  ask(it, kmsCalls.decrypt, framed(message([1, ciphertext], [2, 'uid'], [3, keyId])));

const keyIdOf = (answer: Answer): string => String(fields(answer.message).get(3));

/** Lets time pass for the plugin, in milliseconds. */
function clock(t: TestContext): (ms: number) => void {
  let ahead = 0;
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + ahead);
  return (ms) => {
    ahead += ms;
  };
}

async function withRing(): Promise<ServedDesk> {
  const d = await servedDesk();
  await d.json('keyring create etcd --json');
  return d;
}

test('a key crosses the network once while the plugin runs', async () => {
  await using d = await withRing();
  await using it = await plugin(d);
  const seen = keyAnswers(d);
  const seeds = Array.from({ length: 4 }, () => randomBytes(32));
  for (const seed of seeds) {
    const made = fields((await encrypt(it, seed)).message);
    const back = await decrypt(it, made.get(1) ?? assert.fail(), String(made.get(2)));
    assert.deepEqual(fields(back.message).get(1), seed);
  }
  assert.deepEqual(
    seen.map(({ known, hasKey }) => [known, hasKey]),
    [[0, true], ...Array.from({ length: 7 }, () => [1, false])],
  );
  const [first, ...others] = seen.map(({ bytes }) => bytes);
  for (const bytes of others) assert.ok(bytes < (first ?? 0) - 1500, `${first} and ${bytes} bytes`);
});

test('a key of the API server comes back, by the id of the ring’s key, also after a rotation', async (t) => {
  const pass = clock(t);
  await using d = await withRing();
  await using it = await plugin(d);
  assert.equal((await stat(it.path)).mode & 0o777, 0o600);
  const first = fields((await status(it)).message);
  assert.deepEqual([String(first.get(1)), String(first.get(2))], ['v2', 'ok']);
  const before = String(first.get(3));
  assert.match(before, /^key_[0-9a-z]{26}$/);
  const seed = randomBytes(32);
  const made = fields((await encrypt(it, seed)).message);
  assert.equal(String(made.get(2)), before);
  const ciphertext = made.get(1) ?? assert.fail();
  // The limits of the API server.
  assert.ok(ciphertext.length < 1024 && !ciphertext.includes(seed));
  assert.deepEqual(fields((await decrypt(it, ciphertext, before)).message).get(1), seed);
  await d.kms('keyring rotate etcd');
  pass(60_000);
  const after = keyIdOf(await status(it));
  assert.notEqual(after, before);
  assert.equal(String(fields((await encrypt(it, seed)).message).get(2)), after);
  assert.deepEqual(fields((await decrypt(it, ciphertext, before)).message).get(1), seed);
  const other = await decrypt(it, ciphertext, after);
  assert.deepEqual([other.status, other.message], [3, undefined]);
  assert.match(other.said, /^expected a ciphertext of the key key_\w+, got one of key_\w+$/);
  // The ciphertext is an ordinary encrypted file.
  await writeFile(d.path('seed.kms'), ciphertext);
  assert.deepEqual((await d.kms('decrypt seed.kms')).bytes, seed);
  assert.equal((await encrypt(it, randomBytes(790))).status, 0);
  assert.equal((await encrypt(it, randomBytes(900))).status, 8);
  const ended = await it.stop();
  assert.deepEqual([ended.code, ended.stdout], [0, '']);
  await assert.rejects(stat(it.path), { code: 'ENOENT' });
});

test('a revoked key, another ring’s private key and a server that is away have a status and one line', async (t) => {
  const pass = clock(t);
  await using d = await withRing();
  await d.json('keyring create other --json --private-key-out other.pem');
  const key = await d.appliance.keyWith('keyring.etcd.read', 'keyring.etcd.encrypt', 'keyring.etcd.decrypt');
  const { args, env } = d.network(key.key);
  await using it = await plugin(d, { args, env });
  const keyId = keyIdOf(await status(it));
  const { message: made } = await encrypt(it, randomBytes(32));
  const ciphertext = fields(made).get(1) ?? assert.fail();
  await d.kms(['apikey', 'revoke', key.keyid]);
  pass(60_000);
  for (const answer of [await status(it), await encrypt(it, randomBytes(32)), await decrypt(it, ciphertext, keyId)]) {
    assert.equal(answer.status, 16);
    assert.match(answer.said, /^the credential is not known, no longer valid[^\n]*$/);
  }
  const { code, stderr } = await it.stop();
  assert.equal(code, 0);
  assert.equal(stderr.split('\n').filter((line) => /^kms: the credential/.test(line)).length, 1);

  await using wrong = await plugin(d, { env: { KMS_PRIVATE_KEY: d.path('other.pem') } });
  assert.match(wrong.said(), /warning: the private key is not the one of etcd: nothing can be encrypted/);
  const refused = await decrypt(wrong, ciphertext, keyId);
  assert.equal(refused.status, 3);
  assert.match(refused.said, /^the private key does not open key_/);
  await wrong.stop();
});

test('what is set up wrong ends it at once, with what the appliance says, and nothing listens', async () => {
  await using d = await withRing();
  const { appliance } = d;
  assert.equal((await d.kms('key create held')).code, 0);
  const other = await appliance.keyWith('keyring.other.*');
  const revoked = await appliance.keyWith('keyring.etcd.*');
  await d.kms(['apikey', 'revoke', revoked.keyid]);
  await appliance.call('POST', '/ks/keyrings', { name: 'keyless' });
  const cases: [ring: string, said: RegExp, key?: string][] = [
    ['nosuch', /^kms: there is no such keyring; check the name or id\n$/],
    ['held', /^kms: this is a managed key, held by the appliance \(custody server\)/],
    ['a b', /^kms: there is no such keyring/],
    ['keyless', /^kms: cannot read the private key from \S+keyless\.key: there is no such file/],
    ['etcd', /^kms: the permission flag keyring\.etcd\.read is missing/, other.key],
    ['nosuch', /^kms: the permission flag keyring\.nosuch\.read is missing/, other.key],
    ['etcd', /^kms: the credential is not known/, revoked.key],
    ['etcd', /^kms: the credential is not known/, 'kms_wrong'],
  ];
  for (const [ring, said, key] of cases) {
    const { args, env } = key === undefined ? { args: [], env: {} } : d.network(key);
    const line = [...args, 'kubernetes-plugin', '--ring', ring, '--listen', `unix://${d.path('k.sock')}`];
    const ran = await d.kms(line, { env });
    assert.deepEqual([ran.code, ran.stdout], [1, ''], `${ring}: ${ran.stderr}`);
    assert.match(ran.stderr.replace(/^kms: warning.*\n/, ''), said);
    assert.doesNotMatch(ran.stderr, /listening/);
    await assert.rejects(stat(d.path('k.sock')), { code: 'ENOENT' });
  }
});

test('an appliance that is away or sealed at the start is waited for, and the API server told so meanwhile', async (t) => {
  const pass = clock(t);
  let isSealed = false;
  await using d = await servedDesk({ sealed: () => isSealed });
  // Before the plugin starts: it would rightly end if it asked for a missing keyring after the unseal.
  await d.json('keyring create etcd --json');
  isSealed = true;
  const { args, env } = d.network();
  await using away = await plugin(d, { args: ['--server', 'http://127.0.0.1:1'], env });
  await away.saying('; trying again until it answers\n');
  assert.match(away.said(), /^kms: cannot reach http:\/\/127\.0\.0\.1:1\b[^\n]*; trying again until it answers\n/m);
  const answer = await status(away);
  assert.equal(answer.status, 14);
  assert.match(answer.said, /^cannot reach http:\/\/127\.0\.0\.1:1/);
  assert.equal((await away.stop()).code, 0);

  // No server runs on the data directory yet, and it will be sealed once one does.
  const socket = d.path('kms-data', 'kms.sock');
  await rename(socket, d.path('kms-data', 'later'));
  await using it = await plugin(d);
  assert.equal((await status(it)).status, 14);
  await rename(d.path('kms-data', 'later'), socket);
  pass(9001);
  const sealed = await status(it);
  assert.deepEqual([sealed.status, /sealed/.test(sealed.said)], [14, true]);
  isSealed = false;
  await it.saying('the appliance answers');
  pass(9001);
  assert.equal((await status(it)).status, 0);
  assert.equal(it.said().split('the appliance answers').length, 2, 'said once');
  assert.equal(it.said().split('trying again').length, 2, 'said once');
  assert.equal((await it.stop()).code, 0);

  // A problem found after the unseal ends it, as it would have at the start.
  assert.equal((await d.kms(['keyring', 'delete', 'etcd', '--yes'])).code, 0);
  isSealed = true;
  await using wrong = await plugin(d, { args, env });
  isSealed = false;
  const ended = await wrong.ended;
  assert.deepEqual([ended.code, ended.stdout], [1, '']);
  await assert.rejects(stat(wrong.path), { code: 'ENOENT' });

  // A missing data directory does not count as an appliance that is temporarily away.
  const nowhere = ['--data', 'nowhere', 'kubernetes-plugin', '--ring', 'etcd', '--listen', `unix://${it.path}`];
  const alone = await d.kms(nowhere);
  assert.deepEqual([alone.code, alone.stdout], [3, '']);
  assert.match(alone.stderr, /^kms: nothing to talk to: the data directory \S+ does not exist/);
});

test('the status: one record of activity for what is asked within 50 seconds, and none from memory to others', async (t) => {
  const pass = clock(t);
  await using d = await withRing();
  const reads = async (): Promise<number> => {
    const { data } = await d.json<{ data: { action: string }[] }>('activity search --ring etcd --json');
    return data.filter(({ action }) => action === 'keyring.read').length;
  };
  await using it = await plugin(d);
  const atStart = await reads();
  const before = keyIdOf(await status(it));
  await d.kms('keyring rotate etcd');
  for (let seconds = 0; seconds < 40; seconds += 20) {
    pass(20_000);
    assert.equal(keyIdOf(await status(it)), before);
  }
  assert.equal(await reads(), atStart + 1);
  // The status for another API server, or a restarted one.
  const session = connectHttp2('http://localhost', { createConnection: () => connectSocket(it.path) });
  const after = keyIdOf(await status({ session }));
  session.close();
  assert.notEqual(after, before);
  assert.equal(keyIdOf(await status(it)), before);
  pass(10_001);
  assert.equal(keyIdOf(await status(it)), after);
  assert.equal(await reads(), atStart + 3);
  // After an encrypt, the status reports that encrypt's key.
  await d.kms('keyring rotate etcd');
  const made = String(fields((await encrypt(it, randomBytes(32))).message).get(2));
  assert.notEqual(made, after);
  assert.equal(keyIdOf(await status(it)), made);
  assert.equal(await reads(), atStart + 3);
});

test('an appliance that is away is asked every 9 seconds, said to be once a minute, and to answer again', async (t) => {
  const pass = clock(t);
  await using d = await withRing();
  let isAway = false;
  let refused = 0;
  const open = new Set<Socket>();
  const relay = createServer((socket) => {
    socket.on('error', () => undefined);
    if (isAway) {
      refused++;
      return void socket.destroy();
    }
    const to = connectSocket(Number(new URL(d.url).port), '127.0.0.1');
    open.add(socket.on('close', () => to.destroy()));
    to.on('error', () => socket.destroy());
    socket.pipe(to).pipe(socket);
  });
  await once(relay.listen(0, '127.0.0.1'), 'listening');
  t.after(() => relay.close());
  const address = `http://127.0.0.1:${Object(relay.address()).port}`;
  await using it = await plugin(d, { args: ['--server', address], env: d.network().env });
  isAway = true;
  for (const socket of open) socket.destroy();
  const lines = () => it.said().match(/^kms: cannot reach .*$/gm)?.length ?? 0;
  const first = await status(it);
  assert.equal(first.status, 14);
  const asked = refused;
  assert.ok(asked > 0);
  for (let at = 0; at < 9000; at += 3000) {
    assert.deepEqual(await status(it), first);
    pass(2500);
  }
  assert.deepEqual([refused, lines()], [asked, 1]);
  for (let at = 0; at < 30_000; at += 10_000) {
    pass(10_000);
    assert.equal((await status(it)).status, 14);
  }
  assert.ok(refused > asked);
  assert.equal(lines(), 1);
  pass(25_000);
  assert.equal((await status(it)).status, 14);
  assert.equal(lines(), 2);
  isAway = false;
  assert.equal((await status(it)).status, 14);
  assert.doesNotMatch(it.said(), /the appliance answers/);
  pass(9001);
  assert.equal((await status(it)).status, 0);
  assert.equal((await status(it)).status, 0);
  assert.equal(it.said().split('\nkms: the appliance answers\n').length, 2);
  await it.stop();
});

test('what the API server waits for is answered before it gives up, with the reason', async (t) => {
  await using d = await withRing();
  // Accepts connections and never answers.
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const hangUp = (): void => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(hangUp);
  const address = `http://127.0.0.1:${Object(silent.address()).port}`;
  await using it = await plugin(d, { args: ['--server', address], env: d.network().env });
  for (const [timeout, ms] of [
    ['500m', 450],
    ['400000u', 360],
    ['300000n', 1],
  ] as const) {
    const body = framed(message([1, randomBytes(32)], [2, 'uid']));
    const answer = await ask(it, kmsCalls.encrypt, body, timeout);
    assert.equal(answer.status, 14);
    assert.match(answer.said, new RegExp(`^${address} gave no answer within ${ms} ms; try again later`));
  }
  hangUp();
  // A malformed deadline header is ignored.
  assert.match((await ask(it, kmsCalls.status, framed(Buffer.of()), 'soon')).said, /^cannot reach /);
  await it.stop();
});

test('what is no call of the interface is refused, and the next one answered', async () => {
  await using d = await withRing();
  await using it = await plugin(d);
  const good = (await status(it)).status;
  const cases: [path: string, body: Uint8Array, status: number][] = [
    ['/v1beta1.KeyManagementService/Version', framed(Buffer.of()), 12],
    ['/constructor', framed(Buffer.of()), 12],
    [kmsCalls.status, Buffer.of(), 3],
    [kmsCalls.status, Buffer.of(0, 0, 0, 0, 5, 1), 3],
    [kmsCalls.status, Buffer.concat([framed(Buffer.of()), framed(Buffer.of())]), 3],
    [kmsCalls.encrypt, framed(Buffer.of(1, 2, 3), 1), 12],
    [kmsCalls.encrypt, framed(Buffer.of(0x0a, 0xff)), 3],
    [kmsCalls.encrypt, framed(Buffer.of(0x0b)), 3],
    [kmsCalls.encrypt, framed(randomBytes(70_000)), 8],
    [kmsCalls.decrypt, framed(Buffer.of()), 3],
    [kmsCalls.decrypt, framed(message([1, 'kms-file'], [3, 'x'])), 15],
    [kmsCalls.decrypt, framed(message([1, 'abc'], [3, Buffer.of(0xff)])), 3],
  ];
  for (const [path, body, expected] of cases) {
    const answer = await ask(it, path, body);
    assert.deepEqual([answer.status, answer.message], [expected, undefined], `${path} ${answer.said}`);
    assert.match(answer.said, /^[^\n]+$/);
  }
  // Bytes that are not HTTP/2, and a client that disconnects midway.
  await new Promise<void>((resolve) => {
    const socket = connectSocket(it.path, () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
    socket.on('error', () => undefined).on('close', () => resolve());
    socket.resume();
  });
  const cut = it.session.request({ ':method': 'POST', ':path': kmsCalls.encrypt });
  cut.on('error', () => undefined);
  cut.write(Buffer.of(0, 0));
  cut.destroy();
  assert.deepEqual([good, (await status(it)).status], [0, 0]);
  assert.equal((await it.stop()).code, 0);
  assert.doesNotMatch(it.said(), /defect|\.ts:\d/);
});

test('the socket: one that was left is replaced, one that is in use and other files are not', async () => {
  await using d = await withRing();
  // A socket without a listener, as a killed process leaves it.
  const left = createServer().listen(d.path('first.sock'));
  await once(left, 'listening');
  await rename(d.path('first.sock'), d.path('kubernetes.sock'));
  left.close();
  await once(left, 'close');
  assert.ok((await stat(d.path('kubernetes.sock'))).isSocket());
  await using it = await plugin(d);
  const second = await d.kms(['kubernetes-plugin', '--ring', 'etcd', '--listen', `unix://${it.path}`]);
  assert.deepEqual([second.code, second.stdout], [1, '']);
  assert.match(second.stderr, /^kms: another program listens on /);
  assert.equal((await status(it)).status, 0);
  await it.stop();
  await writeFile(d.path('file'), 'text');
  await symlink(d.path('file'), d.path('link'));
  await symlink(d.path('nowhere'), d.path('dangling'));
  for (const name of ['file', 'link', 'dangling', '.']) {
    const there = await d.kms(['kubernetes-plugin', '--ring', 'etcd', '--listen', `unix://${d.path(name)}`]);
    assert.deepEqual([there.code, there.stdout], [1, ''], name);
    assert.match(there.stderr, /^kms: cannot listen on \S+: it is there already, and is not a socket; choose another/);
  }
  assert.equal(readFileSync(d.path('file'), 'utf8'), 'text');
  const nowhere = await d.kms(['kubernetes-plugin', '--ring', 'etcd', '--listen', `unix://${d.path('no', 'k.sock')}`]);
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /^kms: cannot listen on \S+: there is no such file or directory\n$/);
  const tooLong = `unix:///${'k'.repeat(107)}`;
  for (const listen of ['/run/k.sock', 'unix://run/k.sock', 'tcp://127.0.0.1:1', 'unix:///@k', tooLong]) {
    assert.equal((await d.kms(['kubernetes-plugin', '--ring', 'etcd', '--listen', listen])).code, 2, listen);
  }
});

interface Recorded {
  readonly plaintext: string;
  readonly setup: string;
  readonly status: string;
  readonly encrypt: string;
  readonly decrypt: string;
  readonly keyId: string;
  readonly ciphertext: string;
}

test('the bytes of the official client are answered', async () => {
  const vectors = new URL('../vectors/kubernetes-kms-v2.json', import.meta.url);
  const recorded: Recorded = JSON.parse(readFileSync(vectors, 'utf8'));
  await using d = await withRing();
  await using it = await plugin(d);
  const socket = connectSocket(it.path);
  let bytes = Buffer.of();
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, Buffer.from(chunk)]);
  });
  /** The message in the DATA frames of a stream (RFC 9113 §4.1), once it has ended. */
  const answerTo = async (stream: number): Promise<Buffer> => {
    for (;;) {
      const data: Buffer[] = [];
      let ended = false;
      for (let at = 0; at + 9 <= bytes.length; ) {
        const length = bytes.readUIntBE(at, 3);
        const [type, flags, of] = [bytes[at + 3], bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5)];
        if (of === stream && type === 0) data.push(bytes.subarray(at + 9, at + 9 + length));
        if (of === stream && flags & 1) ended = true;
        at += 9 + length;
      }
      if (ended) return Buffer.concat(data).subarray(5);
      await once(socket, 'data');
    }
  };
  socket.write(Buffer.from(recorded.setup + recorded.status, 'hex'));
  const keyId = String(fields(await answerTo(1)).get(3));
  socket.write(Buffer.from(recorded.encrypt, 'hex'));
  const ciphertext = fields(await answerTo(3)).get(1) ?? assert.fail();
  // The recorded decrypt has another appliance's ciphertext, which is as long as this one's.
  assert.equal(ciphertext.length * 2, recorded.ciphertext.length);
  const [before, after] = [Buffer.from(recorded.keyId).toString('hex'), Buffer.from(keyId).toString('hex')];
  const request = recorded.decrypt.replace(recorded.ciphertext, ciphertext.toString('hex')).replace(before, after);
  assert.notEqual(request, recorded.decrypt);
  socket.write(Buffer.from(request, 'hex'));
  assert.equal(
    fields(await answerTo(5))
      .get(1)
      ?.toString('hex'),
    recorded.plaintext,
  );
  socket.destroy();
  await it.stop();
});

test('any message is read or refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      for (const read of [readEncryptRequest, readDecryptRequest]) {
        try {
          read(bytes);
        } catch (error) {
          assert.ok(error instanceof KmsError && error.code === 'invalid', String(error));
        }
      }
    }),
  );
  const unknown = Buffer.concat([Buffer.of(0x28, 0x96, 0x01, 0x31), Buffer.alloc(8), Buffer.of(0x3d, 1, 2, 3, 4)]);
  assert.deepEqual(Buffer.from(readEncryptRequest(Buffer.concat([unknown, message([1, 'abc'])]))), Buffer.from('abc'));
  assert.deepEqual(
    fields(Buffer.from(statusResponse('key_1'))),
    new Map(
      [
        [1, 'v2'],
        [2, 'ok'],
        [3, 'key_1'],
      ].map(([n, v]) => [Number(n), Buffer.from(String(v))]),
    ),
  );
  assert.throws(() => encryptResponse(new Uint8Array(1024), 'key_1'), { code: 'too-large' });
});
