// The reader of the log may go away or stop reading, and the log's disk may be full: the server keeps serving, buffers
// a bounded number of lines, and ends when it is told to.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { smallDisks } from '../support/small-disk.ts';
import { until } from '../support/until.ts';
import { executable, workDirectory } from './kms.ts';

interface Watched {
  readonly child: ChildProcess;
  readonly port: number;
  readonly ended: Promise<number | null | 'still there'>;
}

/** A server that logs each request. */
function start(stderr: 'pipe' | number): Omit<Watched, 'port'> {
  const cwd = workDirectory();
  const child = spawn(executable, ['serve', '--listen', '127.0.0.1:0', '--log-level', 'info'], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd },
    stdio: ['ignore', 'pipe', stderr],
  });
  after(() => child.kill('SIGKILL'));
  return { child, ended: new Promise<number | null>((resolve) => child.on('exit', resolve)) };
}

function portIn(said: string): number | undefined {
  const [, port] = /listening on http:\S+?:(\d+)\n/.exec(said) ?? [];
  return port === undefined ? undefined : Number(port);
}

/** A server whose log is no longer read. */
async function serveWatched(): Promise<Watched & { readonly stderr: Readable }> {
  const { child, ended } = start('pipe');
  const stderr = child.stderr ?? assert.fail();
  let said = '';
  stderr.on('data', (chunk) => {
    said += chunk;
  });
  const port = await until('it listens', () => portIn(said));
  stderr.removeAllListeners('data').pause();
  return { child, port, ended, stderr };
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

// Other file systems still find some space when they seem full.
const disk = smallDisks(2).find(({ kind }) => kind === 'tmpfs');
if (disk) {
  test('a disk that is full for a while', async (context) => {
    const { path, unmount } = disk.mount();
    const [log, filler] = [join(path, 'log'), join(path, 'filler')];
    const file = openSync(log, 'a');
    const server = start(file);
    context.after(() => {
      server.child.kill('SIGKILL');
      closeSync(file);
      unmount();
    });
    const written = (): string => readFileSync(log, 'utf8');
    const port = await until('it listens', () => portIn(written()));
    assert.throws(() => writeFileSync(filler, Buffer.alloc(4 * 1024 * 1024)), { code: 'ENOSPC' });
    await ask(port, 5000);
    const full = written().length;
    rmSync(filler);
    await until('lines are written again', async () => {
      await ask(port, 1);
      return /"lost":[1-9]/.test(written().slice(full));
    });
    await ask(port, 1);
    assert.equal(await terminate({ ...server, port }), 0);
    for (const line of written().slice(full).split('\n').slice(1, -1)) JSON.parse(line);
  });
}
