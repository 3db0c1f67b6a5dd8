// Targets as they are written, and the secrets of webhooks.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { parseTarget, parseWebhookSecrets } from '../../src/telemetry/streaming/target.ts';

const parse = (text: string) => parseTarget(text, (path) => (path.startsWith('/') ? path : `/here/${path}`));

test('each form of a target, and the name that it is known by', () => {
  assert.deepEqual(parse('syslog+tcp://log.example:514'), {
    kind: 'syslog',
    name: 'syslog+tcp://log.example:514',
    host: 'log.example',
    port: 514,
    tls: false,
  });
  assert.deepEqual(parse('SYSLOG+TLS://Log.Example:6514/'), {
    kind: 'syslog',
    name: 'syslog+tls://log.example:6514',
    host: 'log.example',
    port: 6514,
    tls: true,
  });
  assert.deepEqual(parse('syslog+tls://[2001:DB8::1]:6514'), {
    kind: 'syslog',
    name: 'syslog+tls://[2001:db8::1]:6514',
    host: '2001:db8::1',
    port: 6514,
    tls: true,
  });
  assert.deepEqual(parse('https://Hooks.Example:443/kms?token=s3cret'), {
    kind: 'webhook',
    name: 'https://hooks.example/kms',
    url: 'https://hooks.example/kms?token=s3cret',
  });
  for (const text of ['http://127.0.0.1:9000/a', 'http://localhost/a', 'http://[::1]:1/']) {
    assert.equal(parse(text).kind, 'webhook', text);
  }
  for (const [text, path] of [
    ['file:///var/log/kms/', '/var/log/kms'],
    ['file:///var/my%20logs', '/var/my logs'],
    ['/var/log/kms', '/var/log/kms'],
    ['activity', '/here/activity'],
    ['C:/activity', '/here/C:/activity'],
  ] as const) {
    assert.deepEqual(parse(text), { kind: 'directory', name: path, path }, text);
  }
});

test('the name of a target is that of scheme, host, port and path alone', () => {
  const name = parse('https://hooks.example/kms?token=one').name;
  assert.equal(parse('https://hooks.example/kms?token=two').name, name);
  for (const other of ['https://hooks.example/other', 'https://hooks.example:8443/kms', 'https://other.example/kms']) {
    assert.notEqual(parse(other).name, name, other);
  }
  assert.notEqual(parse('syslog+tcp://a:1').name, parse('syslog+tls://a:1').name);
});

test('what is no target is refused, and no message repeats it', () => {
  const wrong = [
    '',
    'syslog://log.example:514',
    'syslog+udp://log.example:514',
    'syslog+tcp://log.example',
    'syslog+tcp://log.example:0',
    'syslog+tcp://log.example:70000',
    'syslog+tcp://:514',
    'syslog+tcp://log.example:514/path',
    'syslog+tcp://log.example:514?x=s3cret',
    'syslog+tcp://user:s3cret@log.example:514',
    'syslog+tls://lo g:514',
    'syslog+tls://log%20x:514',
    'https://user:s3cret@hooks.example/',
    'https://hooks.example/#s3cret',
    'https://',
    'http://hooks.example/',
    'http://127.example/',
    'http://10.0.0.1/',
    'ftp://s3cret.example/',
    'file://host/s3cret',
    'file:///a%2Fs3cret',
    'file:///a?x=s3cret',
    `https://hooks.example/${'x'.repeat(2048)}`,
  ];
  for (const text of wrong) {
    assert.throws(
      () => parse(text),
      (error: unknown) =>
        error instanceof KmsError && error.code === 'usage' && !`${error.message} ${error.hint}`.includes('s3cret'),
      text,
    );
  }
});

test('secrets of webhooks: one a line, whsec_ and base64 of 24 to 64 bytes', () => {
  const bytes = [24, 32, 64].map((length) => new Uint8Array(randomBytes(length)));
  const line = (secret: Uint8Array): string => `whsec_${Buffer.from(secret).toString('base64')}`;
  assert.deepEqual(parseWebhookSecrets(`${bytes.map(line).join('\n')}\n`), bytes);
  assert.deepEqual(parseWebhookSecrets(`${line(randomOf(32))}\r\n\n`).length, 1);
  for (const text of [
    '',
    '\n',
    'secret',
    'whsec_',
    line(randomOf(23)),
    line(randomOf(65)),
    Buffer.from(randomOf(32)).toString('base64'),
    line(randomOf(32)).slice(0, -1),
    `${line(randomOf(32))} ${line(randomOf(32))}`,
    Array.from({ length: 5 }, () => line(randomOf(32))).join('\n'),
  ]) {
    assert.throws(
      () => parseWebhookSecrets(text),
      (error: unknown) =>
        error instanceof KmsError && error.code === 'usage' && (text.length < 9 || !error.message.includes(text)),
      text,
    );
  }
});

function randomOf(length: number): Uint8Array {
  return new Uint8Array(randomBytes(length));
}
