// The executable's hardening: what the system reports about a serving process, certificates reloaded on a signal, and
// the licences of its components.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { connect as tlsConnect } from 'node:tls';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { until } from '../support/until.ts';
import { kms, serve, workDirectory } from './kms.ts';

const pidOf = (cwd: string): number => Number(readFileSync(join(cwd, 'kms-data', 'kms.pid'), 'utf8'));

test('a serving process: no memory in core dumps, files for its user alone, no debugger at SIGUSR1', async () => {
  const cwd = workDirectory();
  const server = await serve(cwd);
  const pid = pidOf(cwd);
  assert.equal(Number.parseInt(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8'), 16), 0);
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^Umask:\s+0077$/m);
  process.kill(pid, 'SIGUSR1');
  await setTimeout(300);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  const socket = connect(9229, '127.0.0.1');
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ECONNREFUSED');
  assert.equal(await server.end('SIGTERM'), 0);
});

test('NODE_OPTIONS changes nothing', async () => {
  const cwd = workDirectory();
  const { code, stderr } = await kms(cwd, ['--version'], {
    NODE_OPTIONS: '--inspect=127.0.0.1:0 --report-on-fatalerror',
  });
  assert.deepEqual([code, stderr], [0, '']);
});

test('a directory that others can reach is not served', async () => {
  const cwd = workDirectory();
  await kms(cwd, ['init']);
  chmodSync(join(cwd, 'kms-data'), 0o755);
  for (const args of [['serve', '--listen', '127.0.0.1:0'], ['status']]) {
    const { code, stderr } = await kms(cwd, args);
    assert.equal(code, 1);
    assert.match(stderr, /^kms: \S+kms-data: everybody on this machine can reach it \(mode 0755\); run: chmod 0700 /m);
  }
  const { code, stdout } = await kms(cwd, ['doctor']);
  assert.equal(code, 1);
  assert.match(stdout, /^error data-exposed: /m);
});

test('a certificate is read again at SIGHUP', async () => {
  const cwd = workDirectory();
  const make = async (out: string): Promise<{ certificate: string; key: string; fingerprint: string }> => {
    const { code, stdout, stderr } = await kms(cwd, [
      'tls',
      'self-signed',
      '--host',
      'localhost',
      '--out',
      out,
      '--json',
    ]);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const { certificate, key, fingerprint } = await make('tls');
  assert.deepEqual([statSync(key).mode & 0o777, statSync(certificate).mode & 0o777], [0o600, 0o644]);
  assert.equal(
    (await kms(cwd, ['tls', 'self-signed', '--host', 'localhost', '--out', 'tls'])).code,
    1,
    'nothing is overwritten',
  );
  const server = await serve(cwd, ['--tls-cert', certificate, '--tls-key', key]);
  const shown = async (): Promise<string | undefined> => {
    const socket = tlsConnect({ port: Number(new URL(server.url).port), host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const print = socket.getPeerX509Certificate()?.fingerprint256;
    socket.destroy();
    return print;
  };
  assert.equal(await shown(), fingerprint);
  const next = await make('next');
  copyFileSync(next.certificate, certificate);
  copyFileSync(next.key, key);
  process.kill(pidOf(cwd), 'SIGHUP');
  await until('the next certificate is shown', async () => (await shown()) === next.fingerprint);
  assert.equal(await server.end('SIGTERM'), 0);
});

test('a certificate whose time is over is served with, and the log says so', async () => {
  const cwd = workDirectory();
  const { cert, key } = await selfSigned(['localhost'], 30, new Date('2020-01-01'));
  writeFileSync(join(cwd, 'old.pem'), cert);
  writeFileSync(join(cwd, 'old.key'), key, { mode: 0o600 });
  const server = await serve(cwd, ['--tls-cert', 'old.pem', '--tls-key', 'old.key']);
  assert.match(server.output(), /"level":"warn".*no client takes the certificate: it was valid until 2020-01-31T/);
  assert.equal(await server.end('SIGTERM'), 0);
});

test('what it is made of', async () => {
  const cwd = workDirectory();
  const { stdout } = await kms(cwd, ['licenses', '--sbom']);
  assert.equal(JSON.parse(stdout).bomFormat, 'CycloneDX');
  assert.match((await kms(cwd, ['licenses'])).stdout, /^ {2}Node\.js \d/m);
});
