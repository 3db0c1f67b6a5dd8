// Who reads the log may go away or stop reading: the server serves on, holds only so much for that reader, and ends
// when it is told to.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { Agent, get } from 'node:http';
import type { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { until } from '../support/until.ts';
import { executable, workDirectory } from './kms.ts';

interface Watched {
  readonly child: ChildProcess;
  readonly port: number;
  readonly ended: Promise<number | null | 'still there'>;
}

/** A server that logs each request; its log is not read any further. */
async function serveWatched(): Promise<Watched & { readonly stderr: Readable }> {
  const cwd = workDirectory();
  const child = spawn(executable, ['serve', '--listen', '127.0.0.1:0', '--log-level', 'info'], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  after(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
  let text = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.on('exit', () => reject(new Error(`the server ended: ${text}`)));
    child.stderr.on('data', (chunk) => {
      text += chunk;
      const [, found] = /listening on http:\S+?:(\d+)\n/.exec(text) ?? [];
      if (found) resolve(Number(found));
    });
  });
  child.stderr.removeAllListeners('data').pause();
  return { child, port, ended, stderr: child.stderr };
}

async function ask(port: number, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      get({ port, agent, path: '/ks/keyrings' }, (answer) => answer.resume().on('end', resolve)).on('error', reject);
    });
  await Promise.all(Array.from({ length: count }, one));
  agent.destroy();
}

function terminate({ child, ended }: Watched): Promise<number | null | 'still there'> {
  child.kill('SIGTERM');
  const late = new Promise<'still there'>((resolve) => setTimeout(resolve, 20_000, 'still there').unref());
  return Promise.race([ended, late]);
}

test('a reader that is gone before the first line', async () => {
  const server = await serveWatched();
  server.stderr.destroy();
  await ask(server.port, 1);
  assert.equal(await terminate(server), 0);
});

test('a reader that reads no more', async () => {
  const server = await serveWatched();
  await ask(server.port, 5000);
  assert.equal(await terminate(server), 0);
});

test('a reader that comes back is told how many lines it missed, and reads what follows', async () => {
  const server = await serveWatched();
  await ask(server.port, 30_000);
  let text = '';
  server.stderr.on('data', (chunk) => {
    text += chunk;
  });
  server.stderr.resume();
  await until('what was held is read', () => /"lost":\d+/.test(text) && text.endsWith('\n'));
  await ask(server.port, 1);
  assert.equal(await terminate(server), 0);
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  const lost = lines.findIndex((line) => line.lost > 0);
  const asked = lines.filter((line) => line.route === '/ks/keyrings').length;
  assert.equal(asked + lines[lost].lost, 30_001);
  assert.ok(asked < 30_000 && lines.length > lost + 1);
});
