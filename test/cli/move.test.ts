// `kms move` as typed, on a PostgreSQL if the system has one: to a database and back, each copy verified to hold the
// same, while the source refuses to serve.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
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

interface Moved {
  readonly applianceId: string;
  readonly stores: readonly { name: string; transactions: number; rows: number; activities: number; head: string }[];
}

/** Runs the line, expects success, and returns its output. */
async function well(d: Desk, line: string | readonly string[], env: Record<string, string>): Promise<string> {
  const ran = await d.kms(line, { env });
  assert.equal(ran.code, 0, `${line}: ${ran.stderr}`);
  return ran.stdout;
}

/** Digests of the files of a directory, by name. */
function digests(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(dir, name)).isFile(),
  );
  return Object.fromEntries(
    names.sort().map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(dir, name)))
        .digest('hex'),
    ]),
  );
}

async function rings(d: Desk, line: string, env: Record<string, string>): Promise<string[]> {
  const { data } = JSON.parse(await well(d, `keyring list --json --tenant default ${line}`, env));
  return data.map(({ name }: { name: string }) => name).sort();
}

if (!postgres) {
  test('kms move', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('an appliance goes over to a database and back, and what it came from refuses to serve', async () => {
    await using d = await desk();
    const env = { KMS_KEY_FILE: d.path('master.key') };
    const url = emptyDatabase();
    const shared = { ...env, KMS_STORE: url };
    await well(d, 'init --data a', env);
    await well(d, 'keyring create one --data a', env);
    await well(d, 'tenant create blue --host blue.example --data a', env);
    const before = digests(d.path('a'));
    const there: Moved = JSON.parse(await well(d, ['move', '--data', 'a', '--to', url, '--json'], env));
    assert.deepEqual(
      there.stores.map(({ name }) => name.length),
      [6, 16, 16],
    );
    const { 'kms.moved': mark, ...after } = digests(d.path('a'));
    assert.ok(mark);
    assert.deepEqual(after, before, 'all else is as it was');

    for (const line of [
      'keyring list --tenant default --data a',
      'serve --data a --listen 127.0.0.1:0',
      'init --data a',
    ]) {
      const refused = await d.kms(line, { env });
      assert.equal(refused.code, 1, line);
      assert.match(refused.stderr, /the appliance was moved to a database; kms\.moved says when and where/, line);
    }
    assert.deepEqual(await rings(d, '--data n', shared), ['one']);
    const again = await d.kms(['move', '--data', 'a', '--to', url], { env });
    assert.match(again.stderr, /was moved to a database/);

    const server = await serving(d, ['--data', 'n'], shared);
    await well(d, 'keyring create two --tenant default --data n', shared);
    const busy = await d.kms('move --to b', { env: shared });
    assert.equal(busy.code, 1);
    assert.match(busy.stderr, /1 of the appliance's nodes serve: http/);
    assert.equal((await server.stop()).code, 0);
    assert.equal(existsSync(d.path('b')), false);

    const table = await well(d, 'move --to b', shared);
    assert.match(table, /STORE +TRANSACTIONS +ROWS +ACTIVITIES +CHAIN HEAD/);
    const refused = await d.kms('keyring list --tenant default --data n', { env: shared });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the appliance was moved to a data directory; .*--undo/);
    const twice = await d.kms('move --to b2', { env: shared });
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /was moved to .*b already; nothing was changed/);
    assert.equal(existsSync(d.path('b2')), false, 'there is one of it');
    assert.deepEqual(await rings(d, '--data b', env), ['one', 'two']);
    await well(d, 'activity verify --tenant default --data b', env);
    const doctor = await d.kms('doctor --data b --json', { env });
    assert.ok(!/"severity": "error"/.test(doctor.stdout), doctor.stdout);

    await well(d, 'move --undo --data a', env);
    assert.deepEqual(await rings(d, '--data a', env), ['one']);
    await well(d, 'move --undo', shared);
    assert.deepEqual(await rings(d, '--data n', shared), ['one', 'two']);
    const nothing = await d.kms('move --undo --data a', { env });
    assert.match(nothing.stderr, /was not moved elsewhere; nothing was changed/);
  });

  test('a backup from any node is a file as ever, with deleted tenants in it', async () => {
    await using d = await desk();
    const env = { KMS_KEY_FILE: d.path('master.key') };
    const shared = { ...env, KMS_STORE: emptyDatabase() };
    await well(d, 'init --data a', shared);
    await well(d, 'keyring create one --data a', shared);
    await well(d, 'tenant create blue --host blue.example --data a', shared);
    await well(d, 'keyring create two --tenant blue --data a', shared);
    await well(d, 'tenant delete blue --yes --data a', shared);
    await well(d, 'backup create b.kms-backup --data c', shared);
    const { valid, restores, stores } = JSON.parse(await well(d, 'backup verify b.kms-backup --json', env));
    assert.deepEqual([valid, restores, stores], [true, true, 3]);
    const server = await serving(d, ['--data', 'a'], shared);
    await well(d, 'backup create served.kms-backup --data a', shared);
    await well(d, 'drill --data a', shared);
    await well(d, 'doctor --data a', shared);
    assert.equal((await server.stop()).code, 0);
    await well(d, 'backup verify served.kms-backup', env);
    const other = { ...env, KMS_STORE: emptyDatabase() };
    assert.match(await well(d, 'restore served.kms-backup --data n', other), /^database +postgres:/);
    assert.deepEqual(
      readdirSync(d.path('.')).filter((name) => name.startsWith('n')),
      ['n.master.key'],
    );
    assert.deepEqual(await rings(d, '--data n', other), ['one']);
    const taken = await d.kms('restore served.kms-backup --data n', { env: other });
    assert.match(taken.stderr, /the database: has an appliance already; nothing was changed/);
    await well(d, 'restore served.kms-backup --data back', env);
    assert.deepEqual(await rings(d, '--data back', env), ['one']);
    const deleted = JSON.parse(await well(d, 'tenant list --deleted --json --data back', env));
    const { id } = deleted.data.find(({ name }: { name: string }) => name === 'blue');
    await well(d, `tenant restore ${id} --data back`, env);
    const { data } = JSON.parse(await well(d, 'keyring list --json --tenant blue --data back', env));
    assert.deepEqual(
      data.map(({ name }: { name: string }) => name),
      ['two'],
    );
  });

  test('a move that is cut off, or meets with damage, leaves an appliance that serves', async () => {
    await using d = await desk();
    const env = { KMS_KEY_FILE: d.path('master.key') };
    const url = emptyDatabase();
    await well(d, 'init --data a', env);
    await well(d, 'keyring create one --data a', env);
    const [tenant = ''] = readdirSync(d.path('a/tenants'));
    const [log = ''] = readdirSync(d.path(`a/tenants/${tenant}`)).filter((name) => name.startsWith('log-'));
    const path = d.path(`a/tenants/${tenant}/${log}`);
    const bytes = readFileSync(path);
    const { writeFileSync } = await import('node:fs');
    writeFileSync(path, bytes.subarray(0, bytes.length - 700));
    const refused = await d.kms(['move', '--data', 'a', '--to', url], { env });
    assert.equal(refused.code, 1);
    assert.equal(existsSync(d.path('a/kms.moved')), false);
    writeFileSync(path, bytes);
    assert.deepEqual(await rings(d, '--data a', env), ['one']);
    const unreachable = await d.kms('move --data a --to postgres://kms@/none?host=/nowhere', { env });
    assert.notEqual(unreachable.code, 0);
    await well(d, ['move', '--data', 'a', '--to', url], env);
    rmSync(d.path('a/kms.moved'));
    const taken = await d.kms(['move', '--data', 'a', '--to', url], { env });
    assert.match(taken.stderr, /the database: has an appliance already; nothing was changed/);
    assert.equal(existsSync(d.path('a/kms.moved')), false);
  });

  test('options that do not go together are refused', async () => {
    await using d = await desk();
    const url = emptyDatabase();
    const lines: readonly (readonly string[])[] = [
      ['move'],
      ['move', '--to', 'x', '--undo'],
      ['move', '--to', 'x'],
      ['move', '--store', url, '--to', url],
    ];
    for (const line of lines) assert.equal((await d.kms(line, {})).code, 2, line.join(' '));
  });
}
