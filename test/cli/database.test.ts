// Nodes of one appliance on a PostgreSQL, as the commands show them: `status` lists them, `doctor` reports on the
// database, `metrics` counts turns; and configurations that a start refuses.
import assert from 'node:assert/strict';
import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { version } from '../../src/version.ts';
import { freePort } from '../support/free-port.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { parsePrometheus } from '../support/prometheus-text.ts';
import { until } from '../support/until.ts';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

const programs = postgresPrograms();

interface Status {
  readonly shared: {
    readonly database: string;
    readonly nodes: readonly Readonly<Record<string, unknown>>[];
  };
}

interface Report {
  readonly ok: boolean;
  readonly stores: number;
  readonly activities: number;
  readonly findings: readonly { readonly severity: string; readonly name: string; readonly subject: string }[];
}

test('a database out of reach leaves nothing behind, and takes nothing away that was there', async () => {
  await using d = await desk();
  await mkdir(d.path('volume'));
  await mkdir(d.path('locked'));
  await writeFile(d.path('locked', 'kms.lock'), '');
  const before = await readdir(d.dir, { recursive: true });
  const env = { KMS_STORE: `postgres://kms@127.0.0.1:${await freePort()}/kms` };
  for (const command of ['serve --listen 127.0.0.1:0 --log-level silent', 'init', 'keyring list', 'status']) {
    for (const data of ['deep/in/it', 'volume', 'locked']) {
      const { code, stderr } = await d.kms(`${command} --data ${data}`, { env });
      assert.equal(code, 3, `${command} --data ${data}: ${stderr}`);
      assert.deepEqual(await readdir(d.dir, { recursive: true }), before, `${command} --data ${data}`);
    }
  }
});

if (!programs) {
  test('nodes on PostgreSQL as the commands show them', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs, { port: await freePort() });
  after(() => postgres.end());
  const urlOf = (database: string) => `postgres://kms@/${database}?host=${postgres.dir}&port=${postgres.port}`;
  const made = async (d: Desk, database: string): Promise<Readonly<Record<string, string>>> => {
    postgres.createDatabase(database);
    const env = { KMS_STORE: urlOf(database) };
    await d.json('init --json --data first', { env });
    await cp(d.path('first.master.key'), d.path('second.master.key'));
    return env;
  };

  test('status lists the nodes, doctor what it finds of the database, metrics count turns', async () => {
    await using d = await desk();
    const env = await made(d, 'shown');
    const first = await serving(d, ['--data', 'first'], env);
    const second = await serving(d, ['--data', 'second', '--url', 'https://kms.example.org'], env);
    await using _stop = {
      async [Symbol.asyncDispose]() {
        for (const each of [first, second]) await each.stop();
      },
    };
    const { shared } = await d.json<Status>('status --json --data first', { env });
    assert.equal(shared.database, urlOf('shown'));
    const nodes = shared.nodes.map(({ own, live, build, places, appendRule }) => ({
      own,
      live,
      build,
      places,
      appendRule,
    }));
    const common = { live: true, build: version, appendRule: 1 };
    assert.deepEqual(nodes, [
      { ...common, own: true, places: [first.url] },
      { ...common, own: false, places: [second.url] },
    ]);
    const { stdout } = await d.kms('status --data second', { env });
    assert.match(stdout, /^database +postgres:\/\/kms@\/shown\?host=\/\S+&port=\d+$/m);
    assert.match(stdout, /^NODE +VERSION +SCHEMA +UP FOR +HEARD OF$/m);
    assert.match(stdout, new RegExp(`^${first.url} +\\S+ +\\d+\\.\\d+ +\\d+ s +\\d s ago$`, 'm'));
    assert.match(stdout, new RegExp(`^${second.url} \\(this one\\) +\\S+ `, 'm'));

    const report = await d.json<Report>('doctor --json --data first', { env });
    const ofDatabase = report.findings.filter(({ name }) => /^(engine|node)-/.test(name));
    assert.deepEqual(
      ofDatabase.map(({ severity, name, subject }) => [severity, name, subject]),
      [
        ['advice', 'engine-superuser', urlOf('shown')],
        ['advice', 'engine-alone', urlOf('shown')],
      ],
    );
    assert.deepEqual([report.ok, report.stores], [true, 2]);

    const scrape = async () => parsePrometheus((await d.kms('metrics --data first', { env })).stdout);
    // A node learns of the others with its next heartbeat.
    const families = await until('both nodes are known', async () => {
      const found = await scrape();
      return found.get('kms_nodes')?.samples[0]?.value === 2 && found;
    });
    const waits = families.get('kms_turn_wait_seconds')?.samples.find(({ name }) => name.endsWith('_count'));
    assert.ok((waits?.value ?? 0) > 0);
    for (const name of ['kms_turn_replayed_rows_total', 'kms_turns_lost_total', 'kms_lost_branches_total']) {
      assert.ok((families.get(name)?.samples[0]?.value ?? -1) >= 0, name);
    }

    assert.equal((await second.stop()).code, 0);
    const left = await d.json<Status>('status --json --data first', { env });
    assert.equal(left.shared.nodes.length, 1, 'who ends says so');
    assert.equal((await first.stop()).code, 0);
    // Without a server the database is examined only if it is named.
    const alone = await d.json<Report>('doctor --json --data first', { env });
    assert.ok(alone.findings.some(({ name }) => name === 'engine-alone'));
    assert.equal(alone.stores, 2);
    assert.ok(alone.activities > 0, 'those of a server that went on and was stopped');
    const sealed = await d.kms('doctor --data first', { env: { ...env, KMS_KEY_FILE: d.path('none.key') } });
    assert.match(sealed.stdout, /^advice engine-alone: /m);
    assert.match(sealed.stdout, /stores were not examined: /);
    const unnamed = await d.kms('doctor --data first');
    assert.equal(unnamed.code, 1);
    assert.match(unnamed.stdout, /not-examined: .*they are in a database that was not named\n {2}name it with --store/);
  });

  test('doctor proves the stores in the database, with a server and without', async () => {
    await using d = await desk();
    const env = await made(d, 'damaged');
    const server = await serving(d, ['--data', 'first'], env);
    const sound = await d.json<Report>('doctor --json --data first', { env });
    assert.deepEqual([sound.ok, sound.stores], [true, 2]);
    // Damages the tenant's snapshot, which the examination's own checkpoint wrote.
    const largest = 'SELECT dir FROM kms_file GROUP BY dir ORDER BY sum(length(bytes)) DESC LIMIT 1';
    const flip = `UPDATE kms_file SET bytes = set_byte(bytes, 2000, get_byte(bytes, 2000) # 1) WHERE dir = (${largest})`;
    await postgres.query(flip, 'damaged');
    assert.equal((await server.stop()).code, 0);
    const { code, stdout } = await d.kms('doctor --data first', { env });
    assert.equal(code, 1);
    assert.match(stdout, /^error damaged: tenants\/[0-9a-f]{16}: .*snapshot-/m);
  });

  test('a database that loses what it acknowledges is not served from, and init makes nothing there', async () => {
    await using d = await desk();
    const env = await made(d, 'careless');
    const settings = 'fsync=off';
    const careless = new Postgres(programs, { port: await freePort(), settings: [settings] });
    try {
      const url = `postgres://kms@/postgres?host=${careless.dir}&port=${careless.port}`;
      for (const command of ['serve --listen 127.0.0.1:0 --data third', 'init --data third']) {
        const { code, stderr } = await d.kms(command, { env: { KMS_STORE: url } });
        assert.deepEqual([command, code], [command, 1]);
        assert.match(stderr, /^kms: postgres:\/\/kms@\/postgres\?host=\S+: fsync is off: .*; set fsync = on there$/m);
      }
    } finally {
      careless.end();
    }
    assert.equal((await d.kms('doctor --data first', { env })).code, 0);
  });

  test('a database without an appliance leaves no directory behind', async () => {
    await using d = await desk();
    postgres.createDatabase('bare');
    const { code, stderr } = await d.kms('serve --listen 127.0.0.1:0 --log-level silent', {
      env: { KMS_STORE: urlOf('bare') },
    });
    assert.deepEqual([code, await readdir(d.dir)], [3, []]);
    assert.match(stderr, /^kms: there is no appliance in the database; /);
  });

  test('a password that is wrong is told of with what to do, and shows nowhere', async () => {
    await using d = await desk();
    await made(d, 'wrong');
    await writeFile(d.path('password'), 'planted word\n');
    await chmod(d.path('password'), 0o644);
    const url = `postgres://kms:planted@127.0.0.1:${postgres.port}/wrong`;
    const listed = await d.kms(['status', '--data', 'first', '--store', url]);
    assert.equal(listed.code, 2);
    assert.match(listed.stderr, /there is a password in it, and every list of processes shows it/);
    const open = ['status', '--data', 'first', '--store', urlOf('wrong'), '--store-password-file', d.path('password')];
    const exposed = await d.kms(open);
    assert.match(exposed.stderr, /other users can read it, and it holds a password/);
    for (const { stderr, stdout } of [listed, exposed]) assert.doesNotMatch(stderr + stdout, /planted/);
    assert.ok((await readFile(d.path('first', 'kms.node'), 'utf8')).includes('"node"'));
  });
}
