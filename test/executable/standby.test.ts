// The built executable: an appliance under load is killed, its standby is killed repeatedly while it takes over, and
// finally takes over with everything that was shipped; the former primary starts again and refuses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prng } from '../support/prng.ts';
import { until } from '../support/until.ts';
import { asker, kms, serve, workDirectory } from './kms.ts';

const kills = 8;
const seed = Number(process.env.KMS_SEED ?? Math.floor(Math.random() * 2 ** 31));

test(`a takeover that is killed ${kills} times is done in the end (KMS_SEED=${seed})`, async () => {
  const cwd = workDirectory();
  const random = prng(seed);
  const shipping = ['--ship-to', 'shipped', '--ship-every', '1s', '--log-level', 'warn'];
  const server = await serve(cwd, shipping);
  assert.ok(server.apiKey);
  const ask = asker(server.apiKey);
  const made: string[] = [];
  for (let n = 0; n < 40; n++) {
    assert.equal((await ask(`${server.url}/ks/keyrings`, 'POST', { name: `ring-${n}` })).status, 200);
    made.push(`ring-${n}`);
  }
  const by = Date.now();
  await until('all of it is shipped', async () => {
    const { shipping: state } = await (await ask(`${server.url}/readyz`, 'GET')).json();
    return state?.ok && Date.now() - (state.ageSeconds + 1) * 1000 > by;
  });
  await server.end('SIGKILL');
  const promote = ['standby', 'promote', '--from', 'shipped', '--data', 'second', '--wait', '1s'];
  const withKey = [...promote, '--key-file', 'kms-data.master.key', '--json'];
  let taken = await kms(cwd, withKey, {}, 100 + random.int(400));
  for (let n = 1; n < kills && taken.code === null; n++) taken = await kms(cwd, withKey, {}, 100 * n + random.int(600));
  if (taken.code === null) taken = await kms(cwd, withKey);
  if (taken.code !== 0) assert.match(taken.stderr, /holds an appliance, not a standby; if it was one, it took over/);

  const next = await serve(cwd, ['--data', 'second', ...shipping]);
  const { data } = await (await ask(`${next.url}/ks/keyrings?limit=1000`, 'GET')).json();
  const names = new Set(data.map(({ name }: { name: string }) => name));
  for (const name of made) assert.ok(names.has(name), `${name} was shipped and is gone`);
  await assert.rejects(serve(cwd, shipping), /ended with 1: .*took over at .*this appliance no longer serves/s);
  const offline = await kms(cwd, ['keyring', 'list']);
  assert.deepEqual([offline.code, /no longer serves/.test(offline.stderr)], [1, true]);
  const doctor = await kms(cwd, ['doctor', '--data', 'second']);
  assert.doesNotMatch(doctor.stdout, /^error/m);
  assert.equal(await next.end('SIGTERM'), 0);
});
