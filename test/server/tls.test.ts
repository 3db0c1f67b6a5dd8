// TLS as served, with certificates of `kms tls self-signed`: protocol versions, clients that trust them, and another
// certificate without a restart.
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { after, test } from 'node:test';
import { connect, type SecureVersion } from 'node:tls';
import { KmsError } from '../../src/errors.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { serve } from '../../src/server/serve.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-tls-'));
after(() => rmSync(base, { recursive: true, force: true }));
const files = { tlsCert: join(base, 'cert.pem'), tlsKey: join(base, 'key.pem') };
const now = new Date();

async function put(): Promise<{ cert: string; fingerprint: string }> {
  const made = await selfSigned(['localhost', '127.0.0.1'], 30, now);
  writeFileSync(files.tlsCert, made.cert);
  writeFileSync(files.tlsKey, made.key);
  chmodSync(files.tlsKey, 0o600);
  return made;
}

/** The server's certificate as a client that trusts only `ca` sees it. */
function hello(url: string, ca: string, maxVersion: SecureVersion = 'TLSv1.3'): Promise<string> {
  return new Promise((resolve, reject) => {
    // A low security level lets this side offer old versions.
    const old = maxVersion < 'TLSv1.2' ? { ciphers: 'ALL:@SECLEVEL=0', minVersion: 'TLSv1' as const } : {};
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca, maxVersion, ...old }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
      socket.end();
    });
    socket.on('error', reject);
  });
}

function get(url: string, ca: string): Promise<{ status: number | undefined; strict: string | undefined }> {
  return new Promise((resolve, reject) => {
    request(url, { ca }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode, strict: answer.headers['strict-transport-security'] });
    })
      .on('error', reject)
      .end();
  });
}

test('a self-signed certificate says what it is for, and for how long', async () => {
  const { cert, key, fingerprint, notAfter } = await selfSigned(
    ['kms.example', '*.b.example', '::1', '[fe80::1]', '10.0.0.1'],
    7,
    now,
  );
  const parsed = new X509Certificate(cert);
  assert.equal(parsed.fingerprint256, fingerprint);
  assert.equal(parsed.ca, false);
  assert.ok(parsed.checkPrivateKey(createPrivateKey(key)));
  assert.ok(parsed.verify(parsed.publicKey));
  for (const name of ['kms.example', 'a.b.example']) assert.ok(parsed.checkHost(name), name);
  for (const address of ['::1', 'fe80::1', '10.0.0.1']) assert.ok(parsed.checkIP(address), address);
  assert.equal(parsed.checkHost('other.example'), undefined);
  assert.equal(Math.round((notAfter.getTime() - now.getTime()) / 3_600_000), 7 * 24);
  assert.ok(Date.parse(parsed.validFrom) < now.getTime());
});

test('what is no host name is refused', async () => {
  for (const host of [
    '',
    ' ',
    'a b',
    '-a.example',
    'a..b',
    'kms.example:8443',
    'https://kms.example',
    '*.',
    'a*.b',
    'ä.example',
    'x'.repeat(64),
  ]) {
    await assert.rejects(
      selfSigned([host], 7, now),
      (error: unknown) => error instanceof KmsError && error.code === 'usage',
      host,
    );
  }
  await assert.rejects(selfSigned([], 7, now), KmsError);
});

test('TLS 1.2 and 1.3, nothing older; browsers are told to stay with it; the certificate is read again when asked', async () => {
  const first = await put();
  const serving = await serve({ data: join(base, 'data'), listen: '127.0.0.1:0', logLevel: 'silent', ...files });
  try {
    assert.match(serving.url, /^https:/);
    assert.deepEqual(await get(`${serving.url}/healthz`, first.cert), { status: 200, strict: 'max-age=31536000' });
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      assert.equal(await hello(serving.url, first.cert, version), first.fingerprint, version);
    }
    for (const version of ['TLSv1', 'TLSv1.1'] as const)
      await assert.rejects(hello(serving.url, first.cert, version), version);

    const second = await put();
    assert.equal(await hello(serving.url, first.cert), first.fingerprint, 'not before it is asked to');
    assert.equal(await serving.reloadTls(), true);
    assert.equal(await hello(serving.url, second.cert), second.fingerprint);
    await assert.rejects(hello(serving.url, first.cert), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });

    writeFileSync(files.tlsCert, 'no certificate');
    assert.equal(await serving.reloadTls(), true);
    assert.equal(await hello(serving.url, second.cert), second.fingerprint, 'the one in use stays');
    assert.equal((await get(`${serving.url}/healthz`, second.cert)).status, 200);
  } finally {
    await serving.close();
  }
});

test('TLS 1.2 with AEAD and forward secrecy alone, before and after the certificate is read again', async () => {
  const { cert: ca } = await put();
  const serving = await serve({ data: join(base, 'suites'), listen: '127.0.0.1:0', logLevel: 'silent', ...files });
  const suite = (ciphers: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const port = Number(new URL(serving.url).port);
      const socket = connect({ host: '127.0.0.1', port, ca, ciphers, maxVersion: 'TLSv1.2' }, () => {
        resolve(socket.getCipher().name);
        socket.end();
      });
      socket.on('error', reject);
    });
  try {
    for (let n = 0; n < 2; n++) {
      for (const good of ['AES256-GCM-SHA384', 'AES128-GCM-SHA256', 'CHACHA20-POLY1305']) {
        assert.equal(await suite(`ECDHE-ECDSA-${good}`), `ECDHE-ECDSA-${good}`);
      }
      const cbc = ['AES256-SHA384', 'AES128-SHA256', 'AES256-SHA', 'AES128-SHA'].map((name) => `ECDHE-ECDSA-${name}`);
      for (const bad of [...cbc, 'AES256-GCM-SHA384', 'AES128-SHA', 'ALL:!AESGCM:!CHACHA20']) {
        await assert.rejects(suite(`${bad}:@SECLEVEL=0`), { code: 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE' }, bad);
      }
      assert.equal(await serving.reloadTls(), true);
    }
  } finally {
    await serving.close();
  }
});

test('a client that trusts this certificate and the next notices no change, whatever it has under way', async () => {
  const first = await put();
  const serving = await serve({ data: join(base, 'changing'), listen: '127.0.0.1:0', logLevel: 'silent', ...files });
  try {
    for (let change = 0, last = first; change < 3; change++) {
      const next = await put();
      for (const ca of [last.cert + next.cert, next.cert + last.cert]) {
        const before = Array.from({ length: 8 }, () => get(`${serving.url}/healthz`, ca));
        assert.equal(await serving.reloadTls(), true);
        const after = Array.from({ length: 8 }, () => get(`${serving.url}/healthz`, ca));
        for (const { status } of await Promise.all([...before, ...after])) assert.equal(status, 200);
        assert.equal(await hello(serving.url, ca), next.fingerprint);
      }
      last = next;
    }
  } finally {
    await serving.close();
  }
});

test('a private key with a passphrase is refused by what it is', async () => {
  const { cert, key } = await selfSigned(['localhost'], 30, now);
  writeFileSync(files.tlsCert, cert);
  const passphrase = 'secret';
  for (const encrypted of [
    createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase }),
    createPrivateKey(key).export({ type: 'sec1', format: 'pem', cipher: 'aes-256-cbc', passphrase }),
  ]) {
    writeFileSync(files.tlsKey, encrypted);
    const data = join(base, 'locked');
    await assert.rejects(serve({ data, listen: '127.0.0.1:0', logLevel: 'silent', ...files }), (error: unknown) => {
      assert.ok(error instanceof KmsError);
      assert.match(error.message, /key\.pem is a private key with a passphrase/);
      return error.code === 'refused';
    });
  }
});

test('without TLS there is nothing to read again', async () => {
  const serving = await serve({ data: join(base, 'plain'), listen: '127.0.0.1:0', logLevel: 'silent' });
  try {
    assert.equal(await serving.reloadTls(), false);
    const { headers } = await fetch(`${serving.url}/healthz`);
    assert.equal(headers.get('strict-transport-security'), null);
  } finally {
    await serving.close();
  }
});

test('what a client says that offers X25519MLKEM768 no quantum computer reads later', async () => {
  const { cert } = await put();
  const serving = await serve({ data: join(base, 'hybrid'), listen: '127.0.0.1:0', logLevel: 'silent', ...files });
  try {
    const port = Number(new URL(serving.url).port);
    const agreed = (groups: string): Promise<string | null> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port, ca: cert, ecdhCurve: groups }, () => {
          resolve(socket.getProtocol());
          socket.end();
        });
        socket.on('error', reject);
      });
    assert.equal(await agreed('X25519MLKEM768'), 'TLSv1.3');
    assert.equal(await agreed('X25519'), 'TLSv1.3', 'nor is one kept out that does not');
  } finally {
    await serving.close();
  }
});

/** A connection whose writes are held back, and sent as one on request. */
class Held extends Duplex {
  readonly #raw: Socket;
  readonly #waiting: Buffer[] = [];
  #isHeld = false;

  constructor(raw: Socket) {
    super();
    this.#raw = raw;
    raw.on('data', (bytes) => this.push(bytes)).on('end', () => this.push(null));
    raw.on('error', (error) => this.destroy(error));
  }

  hold(): void {
    this.#isHeld = true;
  }

  letGo(): void {
    this.#isHeld = false;
    this.#raw.write(Buffer.concat(this.#waiting.splice(0)));
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#isHeld) this.#waiting.push(bytes);
    else this.#raw.write(bytes);
    done();
  }

  override _final(done: () => void): void {
    done();
  }
}

test('a request that comes as one with the end of its side is answered', async () => {
  const { cert } = await put();
  const serving = await serve({ data: join(base, 'end'), listen: '127.0.0.1:0', logLevel: 'silent', ...files });
  const raw = connectPlain(Number(new URL(serving.url).port), '127.0.0.1');
  const held = new Held(raw);
  const socket = connect({ socket: held, ca: cert, servername: 'localhost' });
  let answer = '';
  socket.on('data', (text) => {
    answer += text;
  });
  await once(socket, 'secureConnect');
  held.hold();
  socket.end('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await new Promise((resolve) => setTimeout(resolve, 50));
  held.letGo();
  await once(raw, 'end');
  raw.destroy();
  await serving.close();
  assert.match(answer, /^HTTP\/1\.1 200 OK/);
});
