// The built executable, on a PostgreSQL if the system has one: an appliance under load moves to a database through its
// shipped directory. The move is killed repeatedly, in each of its steps, and finally completes: everything
// acknowledged is there, and the appliance is served in one place at most.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { prng } from '../support/prng.ts';
import { until } from '../support/until.ts';
import { asker, kms, serve, workDirectory } from './kms.ts';
import { storeUrl } from './nodes.ts';

const kills = 8;
const seed = Number(process.env.KMS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const programs = postgresPrograms();

if (!programs) {
  test('a move that is killed', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs);
  after(() => postgres.end());

  test(`a move that is killed ${kills} times is done in the end (KMS_SEED=${seed})`, async (context) => {
    const cwd = workDirectory();
    const random = prng(seed);
    const server = await serve(cwd, ['--ship-to', 'shipped', '--ship-every', '1s', '--log-level', 'warn']);
    assert.ok(server.apiKey);
    const ask = asker(server.apiKey);
    await until('something is shipped', async () => {
      const { shipping } = await (await ask(`${server.url}/readyz`, 'GET')).json();
      return shipping?.ok && shipping.ageSeconds !== null;
    });
    const answered: string[] = [];
    let isOver = false;
    const writing = (async () => {
      for (let n = 0; !isOver; n++) {
        const name = `ring-${n}`;
        const answer = await ask(`${server.url}/ks/keyrings`, 'POST', { name }).catch(() => undefined);
        if (answer?.status === 200) answered.push(name);
        await delay(20);
      }
    })();
    const url = storeUrl(postgres);
    const move = ['move', '--from', 'shipped', '--data', 'node', '--to', url, '--json'];
    const withKey = [...move, '--key-file', 'kms-data.master.key'];
    let behindFence = 0;
    let ran = await kms(cwd, withKey, {}, 300);
    for (let n = 1; n < kills && ran.code === null; n++) {
      ran = await kms(cwd, withKey, {}, n % 2 ? 300 * n + random.int(600) : 2000 + random.int(4000));
      if (ran.code === null && /telling/.test(ran.stderr)) behindFence++;
    }
    while (ran.code !== 0) {
      // A database with recent activity is left alone for a minute, unless the activity was this move's.
      assert.ok(ran.code === null || /another `kms init` is under way/.test(ran.stderr), ran.stderr);
      if (ran.code !== null) await delay(5000);
      ran = await kms(cwd, withKey);
    }
    isOver = true;
    await writing;
    context.diagnostic(
      `killed ${behindFence} times after the appliance was told to stop; ${answered.length} keyrings made`,
    );
    const { isComplete, stores } = JSON.parse(ran.stdout);
    assert.equal(isComplete, true);
    assert.equal(stores.length, 2);
    assert.ok(answered.length > 0);
    assert.equal(existsSync(join(cwd, 'node.moving')), false);
    assert.equal((await ask(`${server.url}/ks/keyrings`, 'GET')).status, 503, ran.stderr);
    await server.end('SIGTERM');

    const node = await serve(cwd, ['--data', 'node'], { KMS_STORE: url });
    const { data } = await (await ask(`${node.url}/ks/keyrings?limit=10000`, 'GET')).json();
    const names = new Set(data.map(({ name }: { name: string }) => name));
    for (const name of answered) assert.ok(names.has(name), `${name} was answered and is gone`);
    const verified = await kms(cwd, ['activity', 'verify', '--data', 'node'], { KMS_STORE: url });
    assert.equal(verified.code, 0, verified.stderr);
    await assert.rejects(serve(cwd, ['--ship-to', 'shipped']), /no longer serves/);
    assert.equal(await node.end('SIGTERM'), 0);
  });
}
