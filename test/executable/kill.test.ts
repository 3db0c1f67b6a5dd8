// kill -9 at random times under load, repeatedly: everything acknowledged is there after the next start. The times come
// from a seed, which a failure prints; KMS_SEED replays it, KMS_KILL_ROUNDS sets the number of kills, of which there are
// three tenths as many with a PostgreSQL.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { effort } from '../support/effort.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { prng } from '../support/prng.ts';
import { kms, serve, workDirectory } from './kms.ts';
import { storeUrl } from './nodes.ts';

const rounds = Number(process.env.KMS_KILL_ROUNDS ?? effort(5, 12));
const seed = Number(process.env.KMS_SEED ?? Math.floor(Math.random() * 2 ** 31));

const programs = postgresPrograms();
const inFiles = `nothing that was answered is lost by ${rounds} kills (KMS_SEED=${seed})`;
test(inFiles, () => killed(rounds));
if (programs) {
  const kills = Math.ceil(rounds * 0.3);
  test(`nor by ${kills} kills of one in a PostgreSQL (KMS_SEED=${seed})`, async () => {
    const postgres = new Postgres(programs);
    after(() => postgres.end());
    const cwd = workDirectory();
    const env = { KMS_STORE: storeUrl(postgres) };
    const made = await kms(cwd, ['init', '--json'], env);
    assert.equal(made.code, 0, made.stderr);
    await killed(kills, cwd, env, JSON.parse(made.stdout).apiKey.key);
  });
} else {
  test('kills of an appliance in a PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
}

/** Kills an appliance again and again, and looks for what it had answered. One in files makes its first API key. */
async function killed(rounds: number, cwd = workDirectory(), env: Record<string, string> = {}, root?: string) {
  const random = prng(seed);
  let server = await serve(cwd, [], env);
  const apiKey = root ?? server.apiKey;
  assert.ok(apiKey);
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const post = (url: string, path: string, body: object): Promise<Response> =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal((await post(server.url, '/ks/keyrings', { name: 'base' })).status, 200);

  /** Rings that were answered: since the last kill, and before it. */
  const fresh: string[] = [];
  const made: string[] = [];
  const hashes: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const { url } = server;
    let killed = false;
    const load = Array.from({ length: 8 }, async (_, worker) => {
      for (let i = 0; !killed; i++) {
        const name = `r${round}-${worker}-${i}`;
        try {
          const ring = i % 4 === 0 ? await post(url, '/ks/keyrings', { name }) : undefined;
          if (ring) assert.equal(ring.status, 200);
          if (ring && (await ring.json())) fresh.push(name);
          const encrypt = await post(url, '/ks/encrypt', { ringname: 'base' });
          assert.equal(encrypt.status, 200);
          hashes.push((await encrypt.json()).hash);
        } catch (error) {
          if (!killed) throw error;
        }
      }
    });
    await delay(20 + random.int(250));
    killed = true;
    await server.end('SIGKILL');
    await Promise.all(load);
    server = await serve(cwd, [], env);
    const earlier = Array.from({ length: Math.min(20, made.length) }, () => made[random.int(made.length)] ?? '');
    for (const name of [...fresh, ...earlier]) {
      const found = await fetch(`${server.url}/ks/keyrings/${name}`, { headers });
      assert.equal(found.status, 200, `round ${round}: ${name} was answered and is gone`);
    }
    made.push(...fresh.splice(0));
    const last = hashes.at(-1);
    if (last) assert.equal((await fetch(`${server.url}/ks/hash/${last}`, { headers })).status, 200);
  }
  const activity = await post(server.url, '/auth/search/activity?limit=10000', { action: 'keyring.create' });
  if (activity.status === 200) assert.ok((await activity.json()).data.length > Math.min(made.length, 9_999));
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal((await kms(cwd, ['status'], env)).code, 0);
}

test(`an init that is killed can be done again (KMS_SEED=${seed})`, async () => {
  const cwd = workDirectory();
  const random = prng(seed);
  for (let round = 0; round < rounds; round++) {
    const data = `data${round}`;
    await kms(cwd, ['init', '--data', data], {}, random.int(400));
    const again = await kms(cwd, ['init', '--data', data]);
    // Either the first one finished, or the second one did everything.
    if (again.code !== 0) assert.match(again.stderr, /is initialised already/);
    const status = await kms(cwd, ['status', '--data', data, '--json']);
    assert.equal(status.code, 0, status.stderr);
    assert.equal(JSON.parse(status.stdout).tenants.length, 1);
  }
});
