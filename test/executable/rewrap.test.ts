// The keys of an upgraded keyring are rewrapped by the executable, which is killed in between; the next command
// finishes.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { privateKeyPem, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { kms, serve, workDirectory } from './kms.ts';

const cwd = workDirectory();
const keys = 250;

async function run(line: string, stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await kms(cwd, line.split(' '), {}, undefined, stdin);
  assert.equal(code, 0, `${line}: ${stderr}`);
  return stdout;
}

test('what a kill cut off is finished, and the new private key opens all', { timeout: 240_000 }, async () => {
  const server = await serve(cwd);
  const ask = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${server.apiKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  };
  await run('keyring create r --kem x25519 --private-key-out r.pem');
  await run('encrypt --ring r --private-key r.pem -o old.kms', 'old');
  for (let n = 1; n < keys; n++) await ask('/ks/rotate', { ringname: 'r' });
  await run('keyring upgrade r --private-key r.pem');
  const upgrade = 'keyring upgrade r --private-key r.pem --rewrap --json';
  const left = async (): Promise<number> => JSON.parse(await run(`${upgrade} --dry-run`)).left;
  assert.equal(await left(), keys);
  // Kills it after longer and longer times, until the first request has taken effect.
  for (let after = 300; (await left()) === keys; after += 200) await kms(cwd, upgrade.split(' '), {}, after);
  const rest = await left();
  assert.equal(await server.end('SIGKILL'), null);
  const again = await serve(cwd);
  const done = JSON.parse(await run(upgrade));
  assert.deepEqual([done.rewrapped, done.left], [rest, 0]);
  const last = readPrivateKeys(readFileSync(join(cwd, 'r.pem')), 'r.pem').slice(-1);
  writeFileSync(join(cwd, 'new.pem'), privateKeyPem(last), { mode: 0o600 });
  assert.equal(await run('decrypt --private-key new.pem old.kms'), 'old');
  assert.equal(await again.end('SIGTERM'), 0);
});
