// `kms move --from` as typed, on a PostgreSQL if the system has one: a served appliance moves through its shipped
// directory, while clients write, and nothing acknowledged is lost.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

const programs = postgresPrograms();
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => postgres?.end());

function emptyDatabase(): string {
  assert.ok(postgres);
  return postgres.newDatabase();
}

const shipping = ['--data', 'a', '--ship-to', 'shipped', '--ship-every', '1s'];

/** Serves an appliance with keyrings, a deleted tenant, and closed files of the activity log. */
async function shipped(d: Desk) {
  const env = { KMS_KEY_FILE: d.path('master.key') };
  const made = await d.json<{ apiKey: { key: string } }>('init --data a --json', { env });
  const server = await serving(d, shipping, env);
  after(() => server.stop());
  await d.json('tenant create blue --host blue.example --data a --json', { env });
  await d.json('keyring create two --tenant blue --data a --json', { env });
  await d.json('tenant create red --host red.example --data a --json', { env });
  await d.json('tenant delete red --yes --data a --json', { env });
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  const make = (name: string) =>
    fetch(`${server.url}/ks/keyrings`, { method: 'POST', headers, body: JSON.stringify({ name }) });
  assert.equal((await make('first')).status, 200);
  return { env, server, make };
}

async function rings(d: Desk, line: string, env: Record<string, string>): Promise<Set<string>> {
  const { data } = await d.json<{ data: { name: string }[] }>(`keyring list --json --tenant default ${line}`, { env });
  return new Set(data.map(({ name }) => name));
}

if (!postgres) {
  test('kms move --from', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('an appliance under load goes over, loses nothing that it answered, and serves no more', async () => {
    await using d = await desk();
    const { env, server, make } = await shipped(d);
    const url = emptyDatabase();
    const move = ['move', '--from', 'shipped', '--data', 'n', '--to', url, '--wait', '60s', '--json'];
    const answered: string[] = [];
    const isLoaded = Promise.withResolvers<void>();
    let isOver = false;
    const writing = (async () => {
      for (let n = 0; !isOver; n++) {
        if ((await make(`w${n}`)).status === 200 && answered.push(`w${n}`) > 20) isLoaded.resolve();
        await delay(5);
      }
    })();
    await Promise.race([isLoaded.promise, writing]);
    const moved = await d.json<{
      seconds: number;
      isComplete: boolean;
      stores: { name: string; activities: number; head: string }[];
    }>(move, { env });
    isOver = true;
    await writing;
    assert.equal(moved.isComplete, true);
    assert.ok(moved.seconds > 0, String(moved.seconds));
    assert.deepEqual(
      moved.stores.map(({ name }) => name.length),
      [6, 16, 16, 16],
    );
    const shared = { ...env, KMS_STORE: url };
    const there = await rings(d, '--data n', shared);
    for (const name of ['first', ...answered]) assert.ok(there.has(name), `${name} was answered and is missing`);
    for (const tenant of ['default', 'blue']) {
      const verified = await d.kms(`activity verify --tenant ${tenant} --data n`, { env: shared });
      assert.equal(verified.code, 0, verified.stderr);
    }
    const deleted = await d.json<{ data: { name: string }[] }>('tenant list --deleted --json --data n', {
      env: shared,
    });
    assert.ok(deleted.data.some(({ name }) => name === 'red'));
    const doctor = await d.kms('doctor --data n --json', { env: shared });
    assert.doesNotMatch(doctor.stdout, /"severity": "error"/);
    // The former server refuses all requests now, and does so again after a restart.
    assert.equal((await make('late')).status, 503);
    await server.stop();
    const again = await d.kms(['serve', '--listen', '127.0.0.1:0', ...shipping], { env });
    assert.deepEqual([again.code, /no longer serves/.test(again.stderr)], [1, true], again.stderr);
    const { stdout } = await d.kms('doctor --data a --json', { env });
    const found: { name: string; severity: string }[] = JSON.parse(stdout).findings;
    assert.equal(found.find(({ name }) => name === 'taken-over')?.severity, 'error', stdout);
    // Its data can't be moved again either, or they would be served in two places.
    const elsewhere = { ...env, KMS_STORE: emptyDatabase() };
    const astray = await d.kms(['move', '--data', 'a', '--to', elsewhere.KMS_STORE], { env });
    assert.deepEqual([astray.code, /no longer serves/.test(astray.stderr)], [1, true], astray.stderr);
    assert.ok(!existsSync(d.path('a', 'kms.moved')));
    const none = await d.kms('keyring list --data other', { env: elsewhere });
    assert.match(none.stderr, /there is no appliance in the database/);
    assert.deepEqual(
      readdirSync(d.path('.')).filter((name) => name.startsWith('n')),
      ['n', 'n.master.key'],
      'nothing is left of the move',
    );
    const twice = await d.kms(move, { env });
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /the database: has an appliance already; nothing was changed/);
    assert.ok(!existsSync(d.path('n.moving')));
    // A node serves it, and it moves back to a directory, which may ship to the same place.
    const node = await serving(d, ['--data', 'n'], shared);
    await node.stop();
    assert.equal((await d.kms('move --to back --data n', { env: shared })).code, 0);
    const back = await serving(d, ['--data', 'back', '--ship-to', 'shipped'], env);
    assert.equal((await back.stop()).code, 0);
    // An administrator who gives up the later changes can take it back, and then move it.
    const taken = await serving(d, [...shipping, '--take-back'], env);
    assert.equal((await taken.stop()).code, 0);
    const over = await d.kms(['move', '--data', 'a', '--to', elsewhere.KMS_STORE], { env });
    assert.equal(over.code, 0, over.stderr);
  });

  test('one that does not say that it stopped is not believed to have, unless that is accepted', async () => {
    await using d = await desk();
    const { env, server } = await shipped(d);
    await server.stop();
    const url = emptyDatabase();
    const move = ['move', '--from', 'shipped', '--data', 'n', '--to', url, '--wait', '1s'];
    const refused = await d.kms(move, { env });
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, /did not say within 1 s that it stopped; the fence stands/);
    assert.match(refused.stderr, /move its own directory with --data, or take what arrived with --accept-older/);
    const none = await d.kms('keyring list --data n', { env: { ...env, KMS_STORE: url } });
    assert.match(none.stderr, /there is no appliance in the database/);
    const moved = await d.kms([...move, '--accept-older'], { env });
    assert.equal(moved.code, 0, moved.stderr);
    assert.match(moved.stdout, /STORE +TRANSACTIONS +ROWS +ACTIVITIES +CHAIN HEAD/);
    assert.match(moved.stderr, /warning: the appliance did not say that it stopped/);
    assert.match(moved.stderr, /no client was served for [0-9.]+ s/);
    assert.deepEqual([...(await rings(d, '--data n', { ...env, KMS_STORE: url }))], ['first']);
  });

  test('a second run goes on, and another one does not', async () => {
    await using d = await desk();
    const { env } = await shipped(d);
    const url = emptyDatabase();
    const move = ['move', '--from', 'shipped', '--data', 'n', '--to', url, '--wait', '60s'];
    // The wrong key stops no server, and leaves nothing in the database.
    writeFileSync(d.path('wrong.key'), 'x'.repeat(43), { mode: 0o600 });
    const wrong = await d.kms([...move, '--key-file', 'wrong.key'], { env });
    assert.notEqual(wrong.code, 0);
    assert.ok(!existsSync(d.path('shipped', readdirSync(d.path('shipped'))[0] ?? '', 'kms.fence')));
    // A move with another node directory through the same shipped copy, like a repetition after a run that was cut off
    // after the seal.
    const moved = await d.kms(move, { env });
    assert.equal(moved.code, 0, moved.stderr);
    const other = await d.kms(['move', '--from', 'shipped', '--data', 'o', '--to', emptyDatabase()], { env });
    assert.equal(other.code, 1);
    assert.match(other.stderr, /another standby, on .+, took over at /);
    renameSync(d.path('o.moving'), d.path('gone'));
  });

  test('options that do not go together are refused', async () => {
    await using d = await desk();
    await d.kms('init --data a');
    const url = emptyDatabase();
    for (const [line, message] of [
      [['move', '--from', 'a', '--to', 'b', '--store', url], '--from goes with --to postgres://'],
      [['move', '--from', 'a.master.key', '--to', url], '--from: expected a directory'],
      [['move', '--from', 'a', '--undo'], '--from goes with --to postgres://'],
      [['move', '--to', url, '--wait', '5s'], '--wait goes with --from'],
      [['move', '--to', url, '--accept-older'], '--accept-older goes with --from'],
    ] as const) {
      const { code, stderr } = await d.kms(line);
      assert.equal(code, 2, stderr);
      assert.ok(stderr.startsWith(`kms: ${message}`), `${line.join(' ')}: ${stderr}`);
    }
    const own = await d.kms(['move', '--from', 'a', '--data', 'n', '--to', url]);
    assert.equal(own.code, 1);
    assert.match(own.stderr, /is a data directory, not shipped to/);
  });
}
