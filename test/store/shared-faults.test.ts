// Failures of nodes on a real PostgreSQL, if the system has one, and of the database itself: in every case the answers
// are those of a single appliance, judged like the lives on the simulated engine.
import assert from 'node:assert/strict';
import { chmodSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { isFork } from '../../src/model/store-mark.ts';
import type { StoreEvent } from '../../src/store/port.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import type { Op } from '../support/shared-judge.ts';
import {
  asking,
  createStore,
  judgeNodes,
  now,
  openNode,
  SharedLoad,
  type SharedNode,
  SharedProcess,
} from '../support/shared-load.ts';
import { smallDisks } from '../support/small-disk.ts';
import { until } from '../support/until.ts';

type Address = Postgres['address'];

const programs = postgresPrograms();

async function newStore(config: Address): Promise<Uint8Array> {
  const engine = await openPostgres(config);
  try {
    return await createStore(engine);
  } finally {
    await engine.close();
  }
}

/** Nodes in this process, each with clients that keep sending requests. */
class Nodes {
  readonly load = new SharedLoad();
  readonly uid: Uint8Array;
  nodes: readonly SharedNode[];

  private constructor(uid: Uint8Array, nodes: readonly SharedNode[]) {
    this.uid = uid;
    this.nodes = nodes;
    for (const { store } of nodes) this.load.clients(asking(store), 4);
  }

  static async open(config: Address, count = 3): Promise<Nodes> {
    const uid = await newStore(config);
    return new Nodes(uid, await Promise.all(Array.from({ length: count }, () => openNode(config, uid))));
  }

  /** Starts all nodes again, as an operator who continues with the database's content. Returns the former nodes. */
  async startAnew(config: Address): Promise<readonly SharedNode[]> {
    const former = this.nodes;
    for (const node of former) await node.close();
    this.nodes = await Promise.all(former.map(() => openNode(config, this.uid)));
    for (const { store } of this.nodes) this.load.clients(asking(store), 4);
    return former;
  }

  get stores() {
    return this.nodes.map(({ store }) => store);
  }

  /** Waits until enough requests from now on are answered, then for each node. */
  async goOn(): Promise<void> {
    const since = now();
    for (const end = Date.now() + 30_000; this.load.answered(since) < 100; await wait(20)) {
      assert.ok(Date.now() < end, `no answers: ${this.stores.map((store) => store.status().reason).join('; ')}`);
    }
    for (const store of this.stores) await store.transaction(() => {});
  }

  /** Checks that all nodes report the reason, and that nothing is answered. */
  async outage(why: string): Promise<void> {
    for (const store of this.stores) {
      await until(`it says that ${why}`, () => {
        const { writable, reason = '' } = store.status();
        return !writable && reason.includes(why);
      });
    }
    const since = now();
    await wait(300);
    assert.equal(this.load.answered(since), 0);
  }

  /** Ends the clients and judges their observations and those of `others`. Returns the requests that are in the log. */
  async judge(context: TestContext, others: readonly Op[] = []): Promise<Set<number>> {
    const { load } = this;
    await load.stop();
    const found = await judgeNodes(this.stores, [...load.ops, ...others]);
    const silence = load.silence.toFixed(0);
    context.diagnostic(
      `${load.answered()} answered, ${load.refused} refused, ${silence} ms without any answer at most`,
    );
    assert.ok(load.answered() > 100, 'too little happened to prove anything');
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    for (const node of this.nodes) await node.close();
  }
}

function isCheckpoint({ kind }: StoreEvent): boolean {
  return kind === 'checkpoint';
}

interface Pair {
  readonly primary: Postgres;
  readonly standby: Postgres;
  readonly nodes: Nodes;
}

if (!programs) {
  test('faults of nodes on PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const postgres = new Postgres(programs);
  after(() => postgres.end());

  test('connections are cut and the database crashes', async (context) => {
    await using nodes = await Nodes.open(postgres.address);
    for (let round = 0; round < 3; round++) {
      await nodes.goOn();
      await postgres.cutConnections();
    }
    await nodes.goOn();
    const { refused } = nodes.load;
    postgres.stop();
    await until('a request is refused', () => nodes.load.refused > refused);
    postgres.start();
    await nodes.goOn();
    await nodes.judge(context);
  });

  test('a node is killed', async (context) => {
    await using nodes = await Nodes.open(postgres.address, 2);
    const ops: Op[] = [];
    for (const first of [1e6, 2e6]) {
      await using other = await SharedProcess.start(postgres.address, nodes.uid, first, 4);
      await servesSince(other, 0);
      await other.kill();
      ops.push(...other.ops);
    }
    await nodes.goOn();
    await nodes.judge(context, ops);
  });

  function servesSince(other: SharedProcess, since: number): Promise<boolean> {
    return until('it serves again', () => other.ops.some(({ from, answer }) => from > since && answer !== undefined));
  }

  /** Stops the process at a moment when the query returns a row. */
  async function stopWhen({ child }: SharedProcess, query: string): Promise<void> {
    for (;;) {
      child.kill('SIGSTOP');
      await wait(50);
      if ((await postgres.query(query)).rowCount === 1) return;
      child.kill('SIGCONT');
      await wait(20);
    }
  }

  test('a node is stopped in the middle of a checkpoint, and keeps the others from theirs for seconds alone', async (context) => {
    await using nodes = await Nodes.open(postgres.address, 2);
    await postgres.query('CREATE ROLE frozen LOGIN SUPERUSER');
    await using other = await SharedProcess.start({ ...postgres.address, user: 'frozen' }, nodes.uid, 1e6, 4);
    // It holds the lock, for which it may have waited in vain.
    const locker = 'SELECT 1 FROM kms_job JOIN pg_stat_activity ON backend_xid = kms_job.xmax';
    await stopWhen(other, `${locker} WHERE usename = 'frozen'`);
    const stopped = Date.now();
    const made = (): number => nodes.nodes.flatMap(({ events }) => events).filter(isCheckpoint).length;
    const before = made();
    while (made() === before) {
      await nodes.stores[0]?.checkpoint();
      await wait(50);
      assert.ok(Date.now() < stopped + 15_000, 'the others make no checkpoint');
    }
    const kept = Date.now() - stopped;
    context.diagnostic(`${kept} ms until another node made a checkpoint`);
    assert.ok(kept > 1000, 'it was not in the middle of one');
    other.child.kill('SIGCONT');
    const since = now();
    await nodes.goOn();
    await servesSince(other, since);
    await other.stop();
    await nodes.stores[1]?.checkpoint();
    await nodes.judge(context, other.ops);
  });

  test('a node is stopped in its turn, until others have trimmed the log, and goes on', async (context) => {
    await using nodes = await Nodes.open(postgres.address, 2);
    await postgres.query('CREATE ROLE stopped LOGIN SUPERUSER');
    const config = { ...postgres.address, user: 'stopped' };
    await using other = await SharedProcess.start(config, nodes.uid, 1e6, 4);
    // A turn that has read, and not a checkpoint, which would keep the others from their turns.
    const held = `SELECT query FROM pg_stat_activity WHERE usename = 'stopped' AND state = 'idle in transaction'`;
    await stopWhen(other, `SELECT 1 FROM (${held}) AS held HAVING count(*) = 1 AND bool_and(query ~ 'system_seq')`);
    const rows = `SELECT min(seq)::int AS first, max(seq)::int AS last FROM kms_log
      WHERE store = '${Buffer.from(nodes.uid).toString('hex')}'`;
    const [before] = (await postgres.query(rows)).rows;
    await nodes.goOn();
    // Longer than rows are kept.
    await wait(1200);
    await nodes.stores[0]?.checkpoint();
    const [trimmed] = (await postgres.query(rows)).rows;
    assert.ok(trimmed.first > before.last, 'what it would go on from is gone');
    const since = now();
    other.child.kill('SIGCONT');
    await nodes.goOn();
    await servesSince(other, since);
    await other.stop();
    await nodes.judge(context, other.ops);
    const { ops } = other;
    assert.ok(
      ops.some(({ from, until = 0 }) => from < since && until > since),
      'it was in the middle of something',
    );
    assert.ok(nodes.load.silence > 1000, 'others waited for its turn to be ended');
  });

  test('the database takes no writes for a while', async (context) => {
    await using nodes = await Nodes.open(postgres.address);
    await nodes.goOn();
    await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
    await postgres.cutConnections();
    await nodes.outage('the database takes no writes');
    await postgres.query('ALTER DATABASE postgres RESET default_transaction_read_only');
    await nodes.goOn();
    for (const store of nodes.stores) assert.equal(store.status().writable, true);
    await nodes.judge(context);
  });

  test('the password is changed, and changed back', async (context) => {
    const trusted = `local all all trust\n`;
    const asked = 'local all asked scram-sha-256\n';
    await postgres.query(`CREATE ROLE asked LOGIN SUPERUSER PASSWORD 'first'`);
    writeFileSync(join(postgres.data, 'pg_hba.conf'), `${asked}${trusted}`);
    await postgres.query('SELECT pg_reload_conf()');
    const config = { ...postgres.address, user: 'asked', password: async () => 'first' };
    await using nodes = await Nodes.open(config);
    await nodes.goOn();
    await postgres.query(`ALTER ROLE asked PASSWORD 'second'`);
    await postgres.cutConnections();
    await nodes.outage('the database cannot be reached');
    await assert.rejects(openPostgres(config), { code: 'unavailable' });
    await postgres.query(`ALTER ROLE asked PASSWORD 'first'`);
    await nodes.goOn();
    await nodes.judge(context);
  });

  /** A primary with a standby, the address of both, and running nodes. */
  async function pair(settings: readonly string[], run: (to: Pair) => Promise<void>): Promise<void> {
    const primary = new Postgres(programs ?? '', { settings });
    try {
      const standby = new Postgres(programs ?? '', { primary });
      try {
        await primary.until(`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`);
        const hosts = [...primary.address.hosts, ...standby.address.hosts];
        await using nodes = await Nodes.open({ ...primary.address, hosts });
        await nodes.goOn();
        await run({ primary, standby, nodes });
      } finally {
        standby.end();
      }
    } finally {
      primary.end();
    }
  }

  test('the primary is lost and its synchronous standby promoted: nothing is lost', async (context) => {
    await pair(['synchronous_standby_names=standby'], async ({ primary, standby, nodes }) => {
      primary.stop();
      standby.promote();
      await nodes.goOn();
      await nodes.judge(context);
    });
  });

  const cuts = {
    'connections are cut': (primary: Postgres) => primary.cutConnections(),
    // PostgreSQL answers this as a commit, with a warning.
    'the wait is cancelled': async (primary: Postgres) => {
      await primary.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
    },
  };
  for (const [what, cut] of Object.entries(cuts)) {
    test(`what only the primary has is not answered, even where ${what}`, async (context) => {
      await pair(['synchronous_standby_names=standby'], async ({ primary, standby, nodes }) => {
        standby.stop('fast');
        await primary.until(`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
        // Answers that the standby still confirmed may be on their way.
        await wait(150);
        const since = now();
        for (let round = 0; round < 3; round++) {
          // From then on the primary shows data that it alone has committed.
          await cut(primary);
          await wait(150);
        }
        assert.equal(nodes.load.ops.filter(({ until = 0, answer }) => until > since && answer !== undefined).length, 0);
        primary.stop();
        standby.start();
        standby.promote();
        await nodes.goOn();
        await nodes.judge(context);
      });
    });
  }

  test('an asynchronous standby that is behind is promoted: no node goes on by itself, and nothing else is lost', async (context) => {
    await pair([], async ({ primary, standby, nodes }) => {
      standby.stop('fast');
      await nodes.goOn();
      primary.stop();
      for (const op of nodes.load.ops) op.mayBeLost = true;
      standby.start();
      standby.promote();
      await nodes.outage('the database has lost answered requests');
      const former = await nodes.startAnew({
        ...primary.address,
        hosts: [...primary.address.hosts, ...standby.address.hosts],
      });
      await nodes.goOn();
      const found = await nodes.judge(context);
      const { ops } = nodes.load;
      const lost = ops.filter(({ kind, answer, number }) => kind !== 'look' && answer === 200 && !found.has(number));
      context.diagnostic(`${lost.length} answered requests were lost`);
      assert.ok(lost.length > 0, 'too little happened to prove anything');
      for (const { events } of former) {
        const said = events.filter(({ kind }) => kind === 'commits-lost');
        assert.equal(said.length, 1, events.map(({ message }) => message).join('; '));
      }
    });
  });

  test('a standby that was behind is promoted, and the only node left never saw what is lost: clients notice', async () => {
    const primary = new Postgres(programs ?? '');
    try {
      const standby = new Postgres(programs ?? '', { primary });
      try {
        await primary.until(`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'`);
        const hosts = [...primary.address.hosts, ...standby.address.hosts];
        const config = { ...primary.address, hosts };
        const uid = await newStore(config);
        // It looks for other nodes' rows only when it gets a request.
        const left = await openNode(config, uid, { poll: 3_600_000 });
        const gone = await openNode(config, uid);
        const write = async ({ store }: SharedNode, name: string) => store.transaction((tx) => tx.notes.add(name));
        await write(left, 'l0');
        await write(gone, 'g0');
        await primary.until('SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()');
        standby.stop('fast');
        for (const n of [1, 2, 3]) await write(gone, `lost${n}`);
        const seen = gone.store.mark;
        await gone.close();
        primary.stop();
        standby.start();
        standby.promote();
        for (let n = 0; n < 5; n++) {
          for (const end = now() + 20_000; ; await wait(100)) {
            const done = await write(left, `later${n}`).then(
              () => true,
              (error: unknown) => {
                if (now() > end) throw error;
                return false;
              },
            );
            if (done) break;
          }
        }
        assert.deepEqual(
          left.events.filter(({ kind }) => kind === 'commits-lost'),
          [],
          'it cannot know',
        );
        assert.ok(left.store.mark.sequence > seen.sequence);
        assert.ok(isFork(seen, left.store.mark));
        await left.close();
      } finally {
        standby.end();
      }
    } finally {
      primary.end();
    }
  });

  const [disk] = smallDisks(8);
  test('the database has no room left for a while', async (context) => {
    if (!disk) {
      context.diagnostic('nothing can be mounted here: not tried on a full disk');
      return;
    }
    const { path, unmount } = disk.mount();
    const small = new Postgres(programs);
    try {
      small.own(path);
      chmodSync(dirname(path), 0o711);
      await small.query(`CREATE TABLESPACE small LOCATION '${path}'`);
      await small.query('ALTER DATABASE postgres SET default_tablespace = small');
      await using nodes = await Nodes.open(small.address);
      await nodes.goOn();
      // Fills the disk to the last block; nothing needs cleaning up, as a refused write leaves nothing behind.
      const filler = join(path, 'filler');
      const { bavail, bsize } = statfsSync(path);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
      const isFull = (): boolean =>
        nodes.stores.some((store) => store.status().reason?.includes('no room left') ?? false);
      for (const end = Date.now() + 20_000; !isFull(); await wait(10)) assert.ok(Date.now() < end, 'it fills up');
      writeFileSync(filler, '');
      await nodes.goOn();
      await nodes.judge(context);
      assert.ok(nodes.load.refused > 0);
    } finally {
      small.end();
      unmount();
    }
  });
}
