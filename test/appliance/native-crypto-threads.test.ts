// Threads of a server that use node:crypto for their primitives: the serving thread and those that hash passwords, and
// none with `--crypto noble`.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'kms-native-'));
after(() => rmSync(home, { recursive: true, force: true }));

for (const [choice, marks] of [
  ['node', ['argon2Sync main', 'argon2Sync thread', 'createCipheriv main']],
  ['noble', []],
] as const) {
  test(`kms serve --crypto ${choice}`, async () => {
    const marking = ['--import', here('../support/native-marks.ts'), here('../../src/main.ts')];
    const args = ['--data', join(home, choice), 'serve', '--listen', '127.0.0.1:0', '--crypto', choice];
    const env = { PATH: process.env.PATH, HOME: home };
    const server = spawn(process.execPath, [...marking, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    after(() => server.kill('SIGKILL'));
    let said = '';
    const url = await new Promise<string>((resolve, reject) => {
      server.stderr.on('data', (chunk) => {
        said += chunk;
        const [, address] = /listening on (\S+)/.exec(said) ?? [];
        if (address) resolve(address);
      });
      server.once('exit', () => reject(new Error(said)));
    });
    const body = JSON.stringify({ username: 'nobody', password: 'Secret-123' });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/auth/basic/login`, { method: 'POST', headers, body });
    assert.equal(answer.status, 400, await answer.text());
    const closed = once(server, 'close');
    server.kill('SIGTERM');
    assert.deepEqual(await closed, [0, null], said);
    assert.deepEqual((said.match(/^(?:argon2Sync|createCipheriv) \w+$/gm) ?? []).sort(), marks);
  });
}
