// A volatile store: the real database in memory, migrations and transactions, with the activity log in an array and
// nothing on disk. For tests of the layers above the store.
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import canonicalize from 'canonicalize';
import { KmsError } from '../../src/errors.ts';
import { activityLine, parseActivityLine } from '../../src/store/activity/record.ts';
import { runSlices } from '../../src/store/event-loop.ts';
import type { ActivityFilter, ActivityInput, ActivityRecord, ChainedActivity, Store } from '../../src/store/port.ts';
import { Session, type Staging } from '../../src/store/session.ts';
import type { Page, PageRequest, Sql } from '../../src/store/sql.ts';
import { openState } from '../../src/store/state.ts';
import { type Migration, migrate } from '../../src/store/tables/migrations.ts';
import { isAudited } from './plain-filter.ts';
import { sqlWasm } from './wasm.ts';

export interface MemoryStoreOptions<T extends object> {
  readonly migrations: readonly Migration[];
  readonly tables: (sql: Sql) => T;
  /** Whether statements may be run that no log may hold, as to fill tables quickly. */
  readonly runsAnything?: boolean;
}

export async function createMemoryStore<T extends object>(options: MemoryStoreOptions<T>): Promise<Store<T>> {
  const state = await openState(sqlWasm);
  if (options.runsAnything) {
    const statement = state.statement.bind(state);
    state.statement = (text) => Object.assign(statement(text), { isLoggable: true });
  }
  const activity = new ArrayActivity();
  const session = new Session(state, options.tables, activity);
  migrate(state, session, options.migrations);
  let sequence = 1;
  let open = true;
  let alone: Promise<unknown> | undefined;

  async function transaction<R>(run: () => R | Promise<R>): Promise<R> {
    while (alone) await alone.catch(() => {});
    if (!open) throw new KmsError('unavailable', 'the store is closed');
    const value = await run();
    if (!session.wrote) return value;
    sequence++;
    // Yields to the event loop, as waiting for a disk does.
    await setImmediate();
    return value;
  }

  return {
    transaction: (fn) => transaction(() => session.run(fn)),
    transactionInSlices: (fn) =>
      transaction(() => {
        const ended = runSlices(session.runInSlices(fn));
        alone = ended;
        return ended.finally(() => {
          alone = undefined;
        });
      }),
    read: (fn) => session.read(fn),
    activity: {
      search: async (filter, page) => activity.search(filter, page),
      find: async (id) => activity.records.find((record) => record.id === id),
      read: (fromSeq) => activity.read(fromSeq),
    },
    get mark() {
      return { sequence, runs: [] };
    },
    status: () => ({
      writable: open,
      ...(open ? {} : { reason: 'the store is closed' }),
      logBytes: 0,
      snapshotBytes: 0,
      activityBytes: 0,
      sequence,
      lastCheckpointAt: undefined,
      activityCount: activity.records.length,
      activityDropped: undefined,
      activitySegments: 0,
      activityFaults: [],
      activityVerified: 0,
      activityVerifiedAt: undefined,
    }),
    checkpoint: async () => {},
    hold: async () => {
      throw new KmsError('refused', 'a store in memory has no files');
    },
    reseal: async () => [],
    droppable: () => undefined,
    dropActivity: async () => {},
    segments: { look: async () => {}, need: async () => {}, again: async () => {}, pass: async () => {} },
    close: async () => {
      open = false;
      state.close();
    },
  };
}

class ArrayActivity implements Staging {
  readonly records: ActivityRecord[] = [];
  #staged: ActivityRecord[] = [];

  get stagedCount(): number {
    return this.#staged.length;
  }

  stage(input: ActivityInput): string {
    const text = activityLine(input, this.records.length + this.#staged.length + 1);
    const record = parseActivityLine(text);
    if (!record) throw new Error('a line is a record');
    this.#staged.push(record);
    return text;
  }

  discardStaged(toCount = 0): void {
    this.#staged.length = toCount;
  }

  commitStaged(): void {
    this.records.push(...this.#staged);
    this.#staged = [];
  }

  search(filter: ActivityFilter, page: PageRequest): Page<ActivityRecord> {
    const before = page.after ?? Number.POSITIVE_INFINITY;
    const keyids = filter.keyids && new Set(filter.keyids);
    const found = this.records
      .filter((record) => record.seq < before && record.seq > (filter.afterSeq ?? 0))
      .filter((record) => (!keyids || keyids.has(record.keyid)) && matches(record, filter))
      .reverse();
    const items = found.slice(0, page.limit);
    const last = items.at(-1);
    return found.length > items.length && last ? { items, next: last.seq } : { items };
  }

  async *read(fromSeq: number): AsyncIterable<ChainedActivity> {
    let hash = Buffer.alloc(32);
    for (const record of this.records) {
      const line = activityLine(record, record.seq);
      hash = createHash('sha256').update(hash).update(line).digest();
      if (record.seq >= fromSeq) yield { record, line, hash: hash.toString('base64url') };
    }
  }
}

function matches(record: ActivityRecord, filter: ActivityFilter): boolean {
  return (
    (filter.action === undefined || filter.action === record.action) &&
    (filter.ringname === undefined || filter.ringname === record.ringname) &&
    (filter.valid === undefined || filter.valid === record.validAction) &&
    (filter.start === undefined || record.createdAt >= filter.start) &&
    (filter.end === undefined || record.createdAt <= filter.end) &&
    (filter.props === undefined || contains(record.props, filter.props)) &&
    isAudited(record, filter)
  );
}

/** Objects match deeply if they have the wanted members; arrays and scalars must be equal. */
function contains(value: unknown, wanted: unknown): boolean {
  if (!isObject(wanted)) return canonicalize(value) === canonicalize(wanted);
  return (
    isObject(value) &&
    Object.entries(wanted).every(([name, part]) => Object.hasOwn(value, name) && contains(value[name], part))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
