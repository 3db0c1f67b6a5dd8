// An attacker who listens in place of the database, on TCP or at its socket, and asks for the password in each way that
// the protocol has: without TLS no one gets the password, nor anything from which it could soon be guessed.
import assert from 'node:assert/strict';
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { postgresConfig } from '../../src/platform/store-url.ts';
import { EngineError } from '../../src/store/shared/engine.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';

const secret = 'planted word';

/** An authentication request of the protocol. */
function request(kind: number, content: Uint8Array = new Uint8Array()): Buffer {
  const message = Buffer.alloc(9 + content.length);
  message.write('R');
  message.writeUInt32BE(8 + content.length, 1);
  message.writeUInt32BE(kind, 5);
  message.set(content, 9);
  return message;
}

const mechanisms = request(10, Buffer.from('SCRAM-SHA-256\0\0'));
const ok = request(0);
const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Answers each message after the first one. */
type Asking = (socket: Socket, message: Buffer, number: number) => void;

/** The first message of SCRAM, after the client's. */
function scram(iterations: number | string, then: Asking = () => {}): Asking {
  return (socket, message, number) => {
    if (number === 0) socket.write(mechanisms);
    else if (number === 1) {
      const nonce = /r=([^,\0]+)/.exec(message.toString('latin1'))?.[1];
      socket.write(request(11, Buffer.from(`r=${nonce}more,s=${randomBytes(16).toString('base64')},i=${iterations}`)));
    } else then(socket, message, number);
  };
}

const first =
  (...messages: readonly Buffer[]): Asking =>
  (socket, _message, number) => {
    if (number === 0) for (const each of messages) socket.write(each);
  };

/** Each way to ask for the password, and the resulting error. */
const askings: Readonly<Record<string, readonly [Asking, RegExp]>> = {
  'in clear': [first(request(3)), /asks for the password in clear, which is not answered without TLS/],
  'by MD5': [first(request(5, Buffer.from([1, 2, 3, 4]))), /asks for an MD5 hash of the password/],
  'in clear twice': [first(request(3), request(3)), /in clear/],
  'by SCRAM with one iteration': [scram(1), /asks for SCRAM with 1 iterations, expected 4096 or more/],
  'by SCRAM with too few': [scram(4095), /4095 iterations/],
  'by SCRAM with none': [scram(''), /./],
  'by SCRAM with two counts': [scram('1,i=4096'), /./],
  'by SCRAM and then in clear': [scram(4096, (socket) => socket.write(request(3))), /in clear/],
  'by SCRAM, and lets everybody in before it has proved anything': [
    (socket, message, number) => {
      if (number === 1) socket.write(Buffer.concat([ok, ready]));
      else scram(4096)(socket, message, number);
    },
    /breaks off before it has proved that it knows the password/,
  ],
  'by SCRAM, whole, and then lets everybody in': [
    scram(4096, (socket) => socket.write(Buffer.concat([ok, ready]))),
    /breaks off before it has proved/,
  ],
  'by Kerberos, GSSAPI or SSPI': [first(request(7)), /does not speak the protocol of PostgreSQL/],
  'by nothing that there is': [first(request(0xffff_ffff)), /does not speak the protocol of PostgreSQL/],
  'by a message without an end': [first(Buffer.from([0x52, 0, 0, 0, 0, 0, 0, 0, 0])), /./],
  'by a message of another protocol': [first(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')), /./],
  'by a mechanism of its own': [first(request(10, Buffer.from('PLAIN\0\0'))), /./],
};

const base = mkdtempSync(join(tmpdir(), 'kms-sign-in-'));
after(() => rmSync(base, { recursive: true, force: true }));

/** The attacker's server, and everything sent to it. */
async function listening(ask: Asking, where: 'TCP' | 'a socket') {
  const sent: Buffer[] = [];
  const server = createServer((socket) => {
    let number = 0;
    socket.on('error', () => {});
    socket.on('data', (message: Buffer) => {
      sent.push(message);
      ask(socket, message, number++);
    });
  });
  const path = join(base, '.s.PGSQL.5432');
  await new Promise<void>((resolve) => {
    if (where === 'TCP') server.listen(0, '127.0.0.1', resolve);
    else server.listen(path, resolve);
  });
  const address = server.address();
  const url =
    typeof address === 'object' && address
      ? `postgres://kms@127.0.0.1:${address.port}/kms`
      : `postgres://kms@/kms?host=${encodeURIComponent(base)}`;
  return {
    url,
    sent: () => Buffer.concat(sent),
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Describes what lets a guess at the password be tested, if anything sent does. */
function tells(sent: Buffer, ask: string): string | undefined {
  const text = sent.toString('latin1');
  if (text.includes(secret)) return 'the password';
  const md5 = (of: string): string => createHash('md5').update(of).digest('hex');
  const inner = md5(`${secret}kms`);
  const salted = createHash('md5')
    .update(inner)
    .update(Buffer.from([1, 2, 3, 4]))
    .digest('hex');
  if (text.includes(salted)) return 'its MD5 hash';
  return /p=/.test(text) && /one iteration|too few|none|two counts/.test(ask)
    ? 'a proof that is soon guessed'
    : undefined;
}

for (const where of ['TCP', 'a socket'] as const) {
  for (const [what, [ask, message]] of Object.entries(askings)) {
    test(`on ${where}, a listener asks for the password ${what}`, async () => {
      const listener = await listening(ask, where);
      try {
        const env = (name: string) => (name === 'PGPASSWORD' ? secret : undefined);
        const config = await postgresConfig({ url: listener.url, isListed: true, env });
        await assert.rejects(openPostgres(config), (error: unknown) => {
          assert.ok(error instanceof EngineError, String(error));
          assert.match(error.message, message);
          assert.doesNotMatch(`${error.message} ${error.hint} ${error.stack}`, /planted/);
          return true;
        });
        assert.equal(tells(listener.sent(), what), undefined);
      } finally {
        await listener.close();
      }
    });
  }
}

test('what the tests look for is what a client without the guard would send', () => {
  assert.equal(tells(Buffer.from(`p\0${secret}\0`), ''), 'the password');
  const key = createHmac('sha256', pbkdf2Sync(secret, 'salt', 1, 32, 'sha256'))
    .update('Client Key')
    .digest('base64');
  assert.equal(
    tells(Buffer.from(`c=biws,r=x,p=${key}`), 'by SCRAM with one iteration'),
    'a proof that is soon guessed',
  );
});
