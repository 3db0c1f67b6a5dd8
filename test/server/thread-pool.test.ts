// File systems that hang, like a network share whose server is gone: threads that wait for them leave enough for the
// data.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

test('a server goes on writing while eight threads wait for directories that hang', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'kms-hanging-'));
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // A pipe without a writer keeps a thread that opens it waiting, as such a share does.
  const hang = join(dir, 'hang.mjs');
  const source = `import { open } from 'node:fs';
    process.on('SIGUSR2', () => { for (let n = 0; n < 8; n++) open(${JSON.stringify(pipe)}, 'r', () => {}); });`;
  writeFileSync(hang, source);
  const main = new URL('../../src/main.ts', import.meta.url).pathname;
  const data = join(dir, 'data');
  const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
  const kms = [main, 'serve', '--data', data, '--listen', '127.0.0.1:0'];
  execFileSync(process.execPath, [main, 'init', '--data', data], { env, stdio: 'ignore' });
  const server = spawn(process.execPath, ['--import', pathToFileURL(hang).href, ...kms], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    let said = '';
    server.stderr.on('data', (text) => {
      said += text;
    });
    const until = async (isThere: () => boolean): Promise<void> => {
      for (const end = performance.now() + 30_000; !isThere(); ) {
        assert.ok(performance.now() < end && server.exitCode === null, said);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await until(() => said.includes('listening on'));
    server.kill('SIGUSR2');
    await new Promise((resolve) => setTimeout(resolve, 300));
    const args = [main, 'keyring', 'create', 'payroll', '--data', data, '--private-key-out', join(dir, 'k')];
    const made = spawn(process.execPath, args, { env, stdio: 'ignore', timeout: 20_000 });
    const code = await new Promise((resolve) => made.once('exit', resolve));
    assert.equal(code, 0, said);
  } finally {
    server.kill('SIGKILL');
    rmSync(dir, { recursive: true });
  }
});
