// Three nodes of the executable on a PostgreSQL with a synchronous standby, if the system has one, under load and every
// kind of failure: everything acknowledged is in the verified chain, in an order that a single appliance could have
// produced. KMS_KILL_ROUNDS sets the number of rounds.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { workDirectory } from './kms.ts';
import { Nodes, storeUrl } from './nodes.ts';

const programs = postgresPrograms();
const rounds = Number(process.env.KMS_KILL_ROUNDS ?? 1);

if (!programs) {
  test('nodes of the executable on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const pair = async (settings: readonly string[]): Promise<readonly [Postgres, Postgres]> => {
    const primary = new Postgres(programs, { settings });
    after(() => primary.end());
    const standby = new Postgres(programs, { primary });
    after(() => standby.end());
    await primary.until(`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`);
    return [primary, standby];
  };

  test('nodes are killed and stopped, connections cut, the database crashes, its standby takes over', async (context) => {
    const [primary, standby] = await pair(['synchronous_standby_names=standby']);
    await using nodes = await Nodes.start(join(workDirectory(), 'nodes'), storeUrl(primary, standby), ['a', 'b', 'c']);
    await nodes.goOn();
    for (let round = 0; round < rounds; round++) {
      await nodes.end('a', 'SIGKILL');
      await nodes.goOn();
      await nodes.serve('a');
      await primary.cutConnections();
      await nodes.goOn();
      primary.stop();
      await delay(300);
      primary.start();
      await nodes.goOn();
      // Until the process holds the turn.
      const held = `SELECT 1 FROM pg_stat_activity
        WHERE state = 'idle in transaction' AND state_change < clock_timestamp() - interval '0.3 s'`;
      for (;;) {
        nodes.signal('b', 'SIGSTOP');
        await delay(500);
        if ((await primary.query(held)).rowCount !== 0) break;
        nodes.signal('b', 'SIGCONT');
        await delay(50);
      }
      await delay(2000);
      nodes.signal('b', 'SIGCONT');
      await nodes.goOn();
    }
    primary.stop();
    standby.promote();
    await nodes.goOn();
    const report = await nodes.judge('c');
    context.diagnostic(JSON.stringify(report));
    assert.equal(report.lost, 0);
    assert.ok(report.refused > 0, 'too little happened to prove anything');
    await nodes.stop();
    // A running server would remove files while they are read.
    standby.stop('fast');
    // No planted word is in a table, an index, the write-ahead log or the servers' logs.
    const files = [primary, standby].flatMap(({ dir }) => filesIn(dir));
    const withAny = (words: readonly string[]): readonly string[] =>
      files.filter((path) => {
        const bytes = readFileSync(path);
        return words.some((word) => bytes.includes(word));
      });
    assert.ok(nodes.words.length > 50);
    assert.deepEqual(withAny(nodes.words), []);
    assert.ok(withAny(['kms_log']).length > 2, 'what is in clear is found');
  });

  test('an asynchronous standby that is behind takes over: no node goes on before the operator says so', async (context) => {
    const [primary, standby] = await pair([]);
    await using nodes = await Nodes.start(join(workDirectory(), 'nodes'), storeUrl(primary, standby), ['a', 'b']);
    assert.match(nodes.output('a'), /its standby is not synchronous \(standby\): a failover to one loses/);
    await nodes.goOn();
    standby.stop('fast');
    await nodes.goOn();
    primary.stop();
    for (const op of nodes.load.ops) op.mayBeLost = true;
    standby.start();
    standby.promote();
    const lost = /the database has lost answered requests/;
    for (const name of ['a', 'b']) {
      await until('the node says so', async () => lost.test(nodes.output(name)));
      await nodes.end(name, 'SIGTERM');
      // A restart does not continue by itself either.
      await assert.rejects(nodes.serve(name), /the tenant default is older than it was/);
    }
    for (const name of ['a', 'b']) {
      await nodes.serve(name, ['--accept-older', 'default', '--accept-older', 'system']);
    }
    await nodes.goOn();
    const report = await nodes.judge('a');
    context.diagnostic(JSON.stringify(report));
    assert.ok(report.lost > 0, 'too little happened to prove anything');
    await nodes.stop();
  });
}

function filesIn(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
