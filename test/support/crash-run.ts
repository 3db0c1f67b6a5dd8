// One seeded life of a store, on a simulated disk or at a simulated database: work, faults, a crash at some step, recovery, a check of everything
// acknowledged, and on to the next crash. Failures are thrown, and the seed reproduces them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Store } from '../../src/store/port.ts';
import { activityInput, type NoteTables } from '../store/contract.ts';
import { type Prng, prng } from './prng.ts';
import { DatabasePlace, DiskPlace, type SimPlace } from './sim-places.ts';

/**
 * A transaction that was committed in memory. `acknowledged`: it must last; `failed`: it must not; `unknown`: its
 * caller was told that it may have been done.
 */
interface Attempt {
  readonly number: number;
  readonly rows: readonly string[];
  acknowledged: boolean;
  failed: boolean;
  unknown: boolean;
}

interface Faults {
  readonly failures: boolean;
  readonly journal: 'files' | 'rows';
}

export interface CrashRunReport {
  crashes: number;
  transactions: number;
  checkpoints: number;
  tornTails: number;
  writeFailures: number;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

export async function crashRun(seed: number, faults: Faults): Promise<CrashRunReport> {
  const generator = prng(seed);
  const report = { crashes: 0, transactions: 0, checkpoints: 0, tornTails: 0, writeFailures: 0 };
  const run = new CrashRun(generator, faults, report);
  await run.life();
  return report;
}

class CrashRun {
  readonly #prng: Prng;
  readonly #faults: Faults;
  readonly #report: CrashRunReport;
  #place: SimPlace;
  /** Expected result of a recovery: all acknowledged attempts, and a prefix of those after them. */
  #attempts: Attempt[] = [];
  #next = 1;
  #later: (() => void)[] = [];

  constructor(generator: Prng, faults: Faults, report: CrashRunReport) {
    this.#prng = generator;
    this.#faults = faults;
    this.#report = report;
    this.#place = faults.journal === 'files' ? new DiskPlace(generator) : new DatabasePlace(generator);
  }

  async life(): Promise<void> {
    await this.#place.create();
    const rounds = 3 + this.#prng.int(3);
    for (let round = 0; round < rounds; round++) {
      const crashAt = 1 + this.#prng.int(this.#prng.chance(0.4) ? 30 : 110);
      this.#place = this.#place.restart(crashAt);
      await this.#round();
      this.#report.crashes++;
    }
    this.#place = this.#place.restart();
    const store = await this.#open();
    await this.#check(store);
    await store.close();
  }

  /** From a start to a crash. */
  async #round(): Promise<void> {
    let store: Store<NoteTables>;
    try {
      store = await this.#open();
    } catch (error) {
      if (this.#place.crashed) return;
      throw error;
    }
    try {
      await this.#check(store);
    } catch (error) {
      if (this.#place.crashed) return store.close();
      throw error;
    }
    const work: Promise<void>[] = [];
    while (!this.#place.crashed) {
      this.#act(store, work);
      for (let turns = this.#prng.int(3); turns > 0; turns--) await turn();
      if (this.#prng.chance(0.02)) await this.#settle(store, work);
    }
    await Promise.all(work);
    await store.close();
  }

  #act(store: Store<NoteTables>, work: Promise<void>[]): void {
    const dice = this.#prng.next();
    if (dice < 0.03)
      work.push(
        store.checkpoint().then(
          () => undefined,
          () => undefined,
        ),
      );
    else if (dice < 0.06 && this.#faults.failures) this.#place.failAWhile();
    else if (dice < 0.1) for (const run of this.#later.splice(0)) run();
    else work.push(dice < 0.2 ? this.#read(store) : this.#write(store));
  }

  /** Lets everything end without a crash, and checks that failed attempts left nothing. */
  async #settle(store: Store<NoteTables>, work: Promise<void>[]): Promise<void> {
    this.#place.failNoMore();
    await Promise.all(work.splice(0));
    while (!store.status().writable && !this.#place.crashed) {
      for (const run of this.#later.splice(0)) run();
      await turn();
    }
    try {
      await this.#check(store, true);
    } catch (error) {
      if (!this.#place.crashed) throw error;
    }
  }

  /** Data that a reader saw count as acknowledged. */
  async #read(store: Store<NoteTables>): Promise<void> {
    let seen: readonly Attempt[] = [];
    try {
      await store.transaction((tx) => {
        tx.notes.get('count');
        seen = [...this.#attempts];
      });
      if (this.#place.crashed) return;
      for (const attempt of seen) if (!attempt.failed && !attempt.unknown) attempt.acknowledged = true;
    } catch {
      // A read fails together with the writes that it saw.
    }
  }

  async #write(store: Store<NoteTables>): Promise<void> {
    const number = this.#next++;
    const rows = Array.from({ length: 1 + this.#prng.int(3) }, (_, i) => `t${number}/${i}`);
    const kind = this.#prng.next();
    const filler = 'x'.repeat(this.#prng.chance(0.1) ? this.#prng.int(3000) : this.#prng.int(40));
    let attempt: Attempt | undefined;
    try {
      await store.transaction((tx) => {
        for (const row of rows) tx.notes.add(row, filler);
        if (kind < 0.2) {
          assert.throws(() =>
            tx.savepoint(() => {
              tx.notes.add(`lost${number}`);
              tx.record(activityInput(`act_lost_${number}`));
              throw new Error('taken back');
            }),
          );
        }
        const count = tx.notes.get('count');
        if (count) tx.notes.set('count', Number(count.value) + 1);
        else tx.notes.add('count', 1);
        const reporter = number % 3 === 0 ? { reporter: `apik_${number}` } : {};
        tx.record(activityInput(`act_${number}`, { props: { number, filler }, ...reporter }));
        if (kind > 0.95) throw new Error('taken back');
        attempt = { number, rows, acknowledged: false, failed: false, unknown: false };
        this.#attempts.push(attempt);
      });
      if (attempt && !this.#place.crashed) attempt.acknowledged = true;
      this.#report.transactions++;
    } catch (error) {
      if (attempt) attempt[this.#place.isUnknown(error) ? 'unknown' : 'failed'] = true;
    }
  }

  /**
   * Checks that the store holds every acknowledged attempt, and a prefix of those under way at the crash, each whole.
   * `calm`: no crash since the last check, so failed attempts must have left nothing.
   */
  async #check(store: Store<NoteTables>, calm = false): Promise<void> {
    const notes = await store.transaction((tx) => tx.notes.all());
    const rows = notes.filter((note) => note.name !== 'count').map((note) => note.name);
    const found = [...new Set(rows.map((row) => Number(row.slice(1).split('/')[0])))];
    const attempts = this.#attempts;
    const lasting = attempts.filter((attempt) => attempt.acknowledged || found.includes(attempt.number));
    const expected = lasting.map((attempt) => attempt.number);
    assert.deepEqual(found, expected, 'not every acknowledged transaction is there, or not in order');
    assert.deepEqual(
      rows,
      lasting.flatMap((attempt) => attempt.rows),
      'a transaction is there in part',
    );
    const doubtful = attempts.slice(attempts.findLastIndex((attempt) => attempt.acknowledged) + 1);
    for (const attempt of lasting) {
      if (attempt.acknowledged) continue;
      assert.ok(!calm || attempt.unknown, `transaction ${attempt.number} failed and is there`);
      assert.ok(
        !attempt.failed || doubtful.includes(attempt),
        `transaction ${attempt.number} failed long before the crash and is there`,
      );
    }
    assert.equal(notes.find((note) => note.name === 'count')?.value ?? 0, found.length, 'the count');
    await this.#checkActivity(store, expected);
    this.#attempts = lasting;
    for (const attempt of lasting) attempt.acknowledged = true;
  }

  async #checkActivity(store: Store<NoteTables>, expected: readonly number[]): Promise<void> {
    const ids: string[] = [];
    let chain = Buffer.alloc(32);
    for await (const { record, hash } of store.activity.read(1)) {
      ids.push(record.id);
      chain = createHash('sha256').update(chain).update(canonicalLine(record)).digest();
      assert.equal(hash, chain.toString('base64url'), 'the chain of activity');
    }
    assert.deepEqual(
      ids,
      expected.map((number) => `act_${number}`),
      'the activity does not fit the transactions',
    );
    const { items } = await store.activity.search({}, { limit: 3 });
    assert.deepEqual(
      items.map((record) => record.id),
      ids.slice(-3).reverse(),
    );
  }

  #open(): Promise<Store<NoteTables>> {
    this.#later = [];
    return this.#place.open({
      limits: { checkpointBytes: 16_000, segmentRecords: 8, recoveryRetry: 1, checkpointRetry: 0 },
      later: (_milliseconds, run) => this.#later.push(run),
      onEvent: ({ kind }) => {
        if (kind === 'torn-tail') this.#report.tornTails++;
        if (kind === 'checkpoint') this.#report.checkpoints++;
        const failed = kind === 'write-failed' || kind === 'no-turn';
        if (failed && !this.#place.crashed) this.#report.writeFailures++;
      },
    });
  }
}

function canonicalLine(record: object): string {
  return JSON.stringify(record, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
