// Commands with --store, on a PostgreSQL if the system has one: each opens the appliance in the database as a node of
// its own, or uses the server of the named directory.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { Client } from 'pg';
import { toHex } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { postgresConfig } from '../../src/platform/store-url.ts';
import { sealFor } from '../../src/seal/seal.ts';
import { makeCustodian } from '../../src/seal/slot.ts';
import { forgedSeal, forgings } from '../support/foreign-seal.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

const programs = postgresPrograms();
const postgres = programs === undefined ? undefined : new Postgres(programs);
after(() => postgres?.end());

function emptyDatabase(): string {
  assert.ok(postgres);
  return postgres.newDatabase();
}

/** An appliance in a database, which the environment names. */
async function shared(
  d: Desk,
): Promise<{ readonly env: { readonly KMS_STORE: string; readonly KMS_KEY_FILE: string } }> {
  const options = { env: { KMS_STORE: emptyDatabase(), KMS_KEY_FILE: d.path('master.key') } };
  const made = await d.kms('init --data a', options);
  assert.equal(made.code, 0, made.stderr);
  return options;
}

if (!postgres) {
  test('commands with --store', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  test('init makes an appliance in the database once, and any directory is a node of it', async () => {
    await using d = await desk();
    const options = await shared(d);
    assert.deepEqual(readdirSync(d.path('a')).sort(), ['kms.lock', 'kms.node']);
    const again = await d.kms('init --data b', options);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /the database: has an appliance already; nothing was changed/);
    assert.equal(existsSync(d.path('b')), false);
    const made = await d.kms('keyring create r --data c', options);
    assert.equal(made.code, 0, made.stderr);
    const listed = await d.json<{ data: { name: string }[] }>('keyring list --json --data e', options);
    assert.deepEqual(
      listed.data.map(({ name }) => name),
      ['r'],
    );
    const without = await d.kms('keyring list --data c', { env: { KMS_KEY_FILE: d.path('master.key') } });
    assert.equal(without.code, 1);
    assert.match(without.stderr, /is the directory of a node, whose appliance is in a database; .*--store/);
    const typed = await d.kms(['tenant', 'list', '--store', options.env.KMS_STORE, '--data', 'f'], {
      env: { KMS_KEY_FILE: d.path('master.key'), KMS_SERVER: 'http://127.0.0.1:1' },
    });
    assert.equal(typed.code, 0, typed.stderr);
  });

  test('it is sealed, and unsealed, for all from where no server runs', async () => {
    await using d = await desk();
    const options = await shared(d);
    const server = await serving(d, ['--data', 'a'], options.env);
    const health = async (): Promise<number> => (await fetch(`${server.url}/readyz`)).status;
    assert.equal(await health(), 200);
    const sealed = await d.kms('seal --data b', options);
    assert.deepEqual([sealed.code, /^sealed {6}yes/.test(sealed.stdout)], [0, true], sealed.stderr);
    await until('it is sealed', async () => (await health()) === 503);
    const refused = await d.kms('keyring list --data b', options);
    assert.equal(refused.code, 4);
    assert.match(refused.stderr, /somebody sealed it on purpose/);
    const unsealed = await d.kms('unseal --data b', options);
    assert.deepEqual([unsealed.code, /^sealed {6}no/.test(unsealed.stdout)], [0, true], unsealed.stderr);
    await until('it is unsealed', async () => (await health()) === 200);
    assert.equal((await d.kms('keyring list --data b', options)).code, 0);
    const again = await d.kms('unseal --data b', options);
    assert.deepEqual([again.code, again.stderr], [0, 'kms: it is not sealed\n'], 'no server runs on it');
    assert.equal((await server.stop()).code, 0);
  });

  test('doctor looks at the database from a directory that is no node yet, and leaves it so', async () => {
    await using d = await desk();
    const options = await shared(d);
    const looked = await d.kms('doctor --data new', options);
    assert.deepEqual([looked.code, looked.stderr], [0, '']);
    assert.match(looked.stdout, /engine-alone/);
    assert.equal(existsSync(d.path('new')), false);
  });

  test('rows of a database: no command in them is run, and the seal of somebody else is refused', async () => {
    await using d = await desk();
    writeFileSync(d.path('give'), `#!/bin/sh\necho ran >>${d.path('ran')}\necho ${'ef'.repeat(32)}\n`, { mode: 0o700 });
    const options = await shared(d);
    const added = await d.kms(['master', 'add-custodian', 'exec', '--exec', d.path('give'), '--data', 'a'], options);
    assert.equal(added.code, 0, added.stderr);
    rmSync(d.path('ran'));
    const keyless = { env: { KMS_STORE: options.env.KMS_STORE } };
    renameSync(d.path('master.key'), d.path('safe.key'));
    const refused = await d.kms('keyring list --data a', keyless);
    assert.equal(refused.code, 4);
    assert.match(
      refused.stderr,
      /give was not run: it is named in a database, where anybody with write access may have put it; give what/,
    );
    assert.equal(existsSync(d.path('ran')), false);
    renameSync(d.path('safe.key'), d.path('master.key'));

    const { database = '' } = await postgresConfig({
      url: options.env.KMS_STORE,
      isListed: false,
      env: () => undefined,
    });
    const rows = await postgres?.query('SELECT bytes FROM kms_seal', database);
    const victim = new Uint8Array(rows?.rows[0]?.bytes);
    const id = Buffer.from(JSON.parse(Buffer.from(victim).toString()).appliance, 'hex');
    // The node recognises its appliance by the id, which an attacker who writes the rows copies.
    const withId = (length: number): Uint8Array => (length === id.length ? id : systemRandom(length));
    const secret = systemRandom(32);
    const own = {
      secret,
      seal: sealFor([makeCustodian('env', secret)], withId)
        .withStore('system')
        .toBytes(),
    };
    for (const [what, forging] of Object.entries(forgings)) {
      const forged = forgedSeal(own, victim, forging);
      await postgres?.query(`UPDATE kms_seal SET bytes = '\\x${toHex(forged)}', version = version + 1`, database);
      const opened = await d.kms('keyring list --data a', options);
      assert.equal(opened.code, 1, `${what}: ${opened.stderr}`);
      assert.match(opened.stderr, /it is not the appliance that this custodian was made for/, what);
    }
  });

  test('tables of another program are told apart from a database that is away', async () => {
    await using d = await desk();
    const options = { env: { KMS_STORE: emptyDatabase(), KMS_KEY_FILE: d.path('master.key') } };
    const { database } = await postgresConfig({ url: options.env.KMS_STORE, isListed: false, env: () => undefined });
    const other = new Client({ ...postgres.config, database });
    await other.connect();
    await other.query('CREATE TABLE kms_store (id int); CREATE TABLE kms_seal (id int)');
    await other.end();
    for (const line of ['init --data a', 'status --data a', 'serve --data a --listen 127.0.0.1:0']) {
      const ran = await d.kms(line, options);
      assert.equal(ran.code, 3, line);
      assert.match(ran.stderr, /the tables there are not those of an appliance; name the database that has it/, line);
    }
  });

  test('what is for a database is never done in the appliance of a directory that is served here', async () => {
    await using d = await desk();
    const { KMS_STORE: url } = (await shared(d)).env;
    const own = await serving(d, ['--data', 'own']);
    assert.equal((await d.kms('keyring create kept --data own')).code, 0);
    for (const command of ['keyring list', 'keyring delete kept --yes', 'status', 'seal', 'unseal', 'tenant list']) {
      const { code, stdout, stderr } = await d.kms([...command.split(' '), '--data', 'own', '--store', url]);
      assert.deepEqual([code, stdout], [1, ''], command);
      assert.match(
        stderr,
        /own: holds an appliance of its own, and --store names one in a database; .*--data/,
        command,
      );
    }
    for (const [given, code] of [
      ['nonsense', 2],
      ['postgres://kms:secret@db/kms', 2],
    ] as const) {
      const refused = await d.kms(['keyring', 'list', '--data', 'own', '--store', given]);
      assert.deepEqual([refused.code, refused.stdout], [code, ''], given);
      assert.match(refused.stderr, /^kms: --store: /);
      assert.ok(!refused.stderr.includes('secret'));
    }
    const here = await d.kms('keyring show kept --data own', { env: { KMS_STORE: url } });
    assert.equal(here.code, 0, 'the directory that is typed comes before the database of the environment');
    assert.equal((await own.stop()).code, 0);
  });

  test('options that do not go together are refused', async () => {
    await using d = await desk();
    const options = await shared(d);
    const wrong: readonly [string, RegExp][] = [
      ['serve --data a --ship-to shipped', /--ship-to is for a data directory/],
      ['serve --data a --listen 127.0.0.1:0 --store mysql://x/y', /--store/],
      ['keyring list --data a --store postgres://kms:secret@db/kms', /password/],
    ];
    for (const [line, message] of wrong) {
      const ran = await d.kms(line, options);
      assert.notEqual(ran.code, 0, line);
      assert.match(ran.stderr, message, line);
      assert.ok(!ran.stderr.includes('secret'), line);
    }
    const alone = await d.kms('keyring list --store-password-file p', { env: {} });
    assert.match(alone.stderr, /--store-password-file goes with --store/);
  });
}
