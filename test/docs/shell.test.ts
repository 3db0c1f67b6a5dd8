// The shell that runs the guides' commands leaves no process behind, however a test that uses it ends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { until } from '../support/until.ts';
import { inSession, Shell } from './shell.ts';

const serving = `sh -c 'echo listening on a port; exec sleep 1000'`;
const isThere = (): boolean => true;

/** A shell with a server and an unregistered background process. */
async function busy(): Promise<Shell> {
  const shell = await Shell.open();
  assert.equal((await shell.serve(serving, isThere)).exitCode, 0);
  assert.equal((await shell.run('sleep 1000 & echo')).exitCode, 0);
  assert.ok(inSession(shell.session).length >= 3);
  return shell;
}

if (process.argv[2] === 'alone') {
  console.log((await busy()).session);
  await new Promise((resolve) => setTimeout(resolve, 600_000));
} else {
  test('what a shell started ends with it, also in the background, and where a command ended the shell', async () => {
    const sessions: number[] = [];
    {
      await using one = await busy();
      await using other = await busy();
      sessions.push(one.session, other.session);
      await assert.rejects(other.run('kill -KILL $$'), /it ends the shell/);
    }
    for (const session of sessions) assert.deepEqual(inSession(session), []);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`and with the process of the test, at ${signal}`, async () => {
      const child = spawn(process.execPath, [import.meta.filename, 'alone'], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [line] = await once(child.stdout, 'data');
      const session = Number(line);
      assert.ok(inSession(session).length >= 3);
      child.kill(signal);
      await once(child, 'exit');
      await until('all have ended', () => inSession(session).length === 0);
    });
  }
}
