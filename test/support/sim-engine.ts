// A shared engine in memory that simulates a remote database: messages take time and get lost in either direction, a
// commit is done or not, or done later without an answer, transactions end with their connection, a failover loses the
// last commits. Everything is drawn from a seeded generator.
import { KmsError } from '../../src/errors.ts';
import type { WholeFiles } from '../../src/store/files.ts';
import {
  type Control,
  type CoveredLog,
  EngineError,
  type EngineFacts,
  type EngineFault,
  type KnownRow,
  type ListedNode,
  type ListedStore,
  type LogConnection,
  type LogRow,
  type NodeEntry,
  nodeForgotten,
  rowsInTurn,
  type SharedEngine,
  type SharedSeal,
  systemName,
  type TurnEnd,
  type TurnStart,
} from '../../src/store/shared/engine.ts';
import type { Prng } from './prng.ts';

interface SimStore {
  readonly name: string;
  readonly protocol: number;
  readonly isWhole: boolean;
  readonly made: number;
  /** By sequence number, in order. */
  readonly rows: ReadonlyMap<number, { readonly row: LogRow; readonly at: number }>;
}

/** Committed content: immutable, replaced as a whole. */
interface Contents {
  readonly stores: ReadonlyMap<string, SimStore>;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly seal: SharedSeal | undefined;
  /** Expiry of each hold, by store and holder. */
  readonly holds: ReadonlyMap<string, number>;
  readonly nodes: ReadonlyMap<string, { readonly entry: NodeEntry; readonly began: number; readonly seen: number }>;
}

/** A holder of a store's lock, or a waiter; not `open` once its transaction has ended. */
interface Locker {
  readonly go: () => void;
  open: boolean;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The database itself. */
export class SimDatabase {
  now = 1000;
  /** Maximum number of rows that a turn shows. */
  rowsInTurn = rowsInTurn;
  readonly prng: Prng;
  /** The content after each commit; the last one is current. */
  #history: Contents[] = [{ stores: new Map(), files: new Map(), seal: undefined, holds: new Map(), nodes: new Map() }];
  readonly #locks = new Map<string, Locker[]>();
  /** Counts failovers: earlier connections are gone. */
  era = 0;

  constructor(prng: Prng) {
    this.prng = prng;
  }

  get contents(): Contents {
    const last = this.#history.at(-1);
    if (!last) throw new Error('a history has a beginning');
    return last;
  }

  get commits(): number {
    return this.#history.length;
  }

  commit(change: Partial<Contents>): void {
    this.#history.push({ ...this.contents, ...change });
  }

  /** A standby takes over that lacks the last `lost` commits, possibly none. All connections end. */
  failover(lost: number): void {
    this.era++;
    const waiting = [...this.#locks.values()].flat();
    this.#locks.clear();
    for (const { go } of waiting) go();
    this.#history.length = Math.max(1, this.#history.length - lost);
  }

  /** All rows of a store. */
  rows(store: string): readonly LogRow[] {
    return [...(this.contents.stores.get(store)?.rows.values() ?? [])].map(({ row }) => row);
  }

  setRows(store: string, rows: SimStore['rows']): void {
    const found = this.contents.stores.get(store);
    if (!found) throw new Error('no such store');
    this.commit({ stores: new Map(this.contents.stores).set(store, { ...found, rows }) });
  }

  async lock(name: string): Promise<Locker> {
    const waiting = this.#locks.get(name) ?? [];
    this.#locks.set(name, waiting);
    const { promise, resolve } = Promise.withResolvers<void>();
    const locker = { go: resolve, open: true };
    waiting.push(locker);
    if (waiting.length === 1) resolve();
    await promise;
    return locker;
  }

  isLocked(name: string): boolean {
    return (this.#locks.get(name)?.length ?? 0) > 0;
  }

  unlock(name: string, locker: Locker): void {
    locker.open = false;
    const waiting = this.#locks.get(name) ?? [];
    if (waiting[0] !== locker) return;
    waiting.shift();
    waiting[0]?.go();
  }
}

/**
 * Faults of a message: the request is lost, or its answer is; a commit may be done only after its connection was lost;
 * or the database refuses.
 */
export type SimFault = 'request' | 'answer' | 'later' | Extract<EngineFault, 'read-only' | 'full' | 'retry'>;

export interface SimEngineOptions {
  /** The fault of a message by its number, from 1 on; undefined if it has none. */
  fault?: (number: number, kind: 'begin' | 'end' | 'read' | 'write') => SimFault | undefined;
}

/** One node's connection to the database. */
export class SimEngine implements SharedEngine {
  readonly database: SimDatabase;
  readonly files: WholeFiles;
  fault: SimEngineOptions['fault'];
  messages = 0;
  /** The node is dead: nothing reaches it any more. */
  dead = false;
  readonly connections: SimLogConnection[] = [];
  #stalled: Promise<void> | undefined;

  constructor(database: SimDatabase, { fault }: SimEngineOptions = {}) {
    this.database = database;
    this.fault = fault;
    this.files = this.#files();
  }

  /** Stalls the node in the middle of whatever it does, until the returned function is called. */
  stall(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stalled = promise;
    return () => {
      this.#stalled = undefined;
      resolve();
    };
  }

  /** Kills the node. Messages it has sent may still arrive. */
  kill(): void {
    this.dead = true;
    for (const connection of this.connections) connection.drop();
  }

  async wait(most: number): Promise<void> {
    for (let turns = this.database.prng.int(most); turns > 0; turns--) await turn();
    await this.#stalled;
    // A dead node never learns the result.
    if (this.dead) throw new EngineError('unreachable', new Error('the node is dead'));
  }

  faultOf(kind: 'begin' | 'end' | 'read' | 'write'): SimFault | undefined {
    return this.fault?.(++this.messages, kind);
  }

  /** A message that is read, or applied, in one step. */
  async #message<R>(kind: 'read' | 'write', run: () => R): Promise<R> {
    await this.wait(3);
    const fault = this.faultOf(kind);
    if (fault === 'request' || fault === 'later') throw new EngineError('unreachable');
    if (fault && fault !== 'answer') throw new EngineError(fault);
    const answer = run();
    await this.wait(3);
    if (fault === 'answer') throw new EngineError(kind === 'read' ? 'unreachable' : 'in-doubt');
    return answer;
  }

  create(store: string, protocol: number, first: LogRow, name = store): Promise<void> {
    return this.#message('write', () => {
      const { stores } = this.database.contents;
      if (stores.has(store) || [...stores.values()].some((each) => each.name === name)) {
        throw new KmsError('refused', 'there is such a store already');
      }
      const made = this.database.now;
      const rows = new Map([[first.seq, { row: first, at: made }]]);
      this.database.commit({ stores: new Map(stores).set(store, { name, protocol, isWhole: false, made, rows }) });
    });
  }

  facts(): Promise<EngineFacts> {
    return this.#message('read', () => ({
      version: '1.0',
      versionNumber: 999_999,
      fsync: true,
      fullPageWrites: true,
      synchronousStandbys: 'one',
      standbys: [{ name: 'one', isSynchronous: true }],
      tls: undefined,
      isLocal: true,
      isSuperuser: false,
      now: this.database.now,
    }));
  }

  noteNode(entry: NodeEntry, begins: boolean): ReturnType<SharedEngine['noteNode']> {
    return this.#message('write', () => {
      const { contents, now } = this.database;
      const before = contents.nodes.get(entry.id);
      const began = begins || !before ? now : before.began;
      const young = [...contents.nodes].filter(([, { seen }]) => seen > now - nodeForgotten);
      this.database.commit({ nodes: new Map(young).set(entry.id, { entry, began, seen: now }) });
      return { now, nodes: this.#listNodes() };
    });
  }

  nodes(): Promise<readonly ListedNode[]> {
    return this.#message('read', () => this.#listNodes());
  }

  #listNodes(): readonly ListedNode[] {
    const { contents, now } = this.database;
    return [...contents.nodes.values()].map(({ entry, began, seen }) => ({
      ...entry,
      upFor: now - began,
      age: now - seen,
    }));
  }

  forgetNode(id: string): Promise<void> {
    return this.#message('write', () => {
      this.database.commit({ nodes: new Map([...this.database.contents.nodes].filter(([each]) => each !== id)) });
    });
  }

  stores(): Promise<readonly ListedStore[]> {
    return this.#message('read', () =>
      [...this.database.contents.stores].map(([store, { name, isWhole, made }]) => ({
        store,
        name,
        isWhole,
        age: this.database.now - made,
      })),
    );
  }

  finish(store: string): Promise<void> {
    return this.#message('write', () => {
      const { stores } = this.database.contents;
      const found = stores.get(store);
      if (found) this.database.commit({ stores: new Map(stores).set(store, { ...found, isWhole: true }) });
    });
  }

  erase(store: string): Promise<void> {
    return this.#message('write', () => {
      const { stores, files } = this.database.contents;
      this.database.commit({
        stores: new Map([...stores].filter(([each]) => each !== store)),
        files: new Map([...files].filter(([name]) => !name.startsWith(`${store}/`))),
      });
    });
  }

  readSeal(): Promise<SharedSeal | undefined> {
    return this.#message('read', () => this.database.contents.seal);
  }

  replaceSeal(before: number, bytes: Uint8Array): Promise<boolean> {
    return this.#message('write', () => {
      const { seal } = this.database.contents;
      if ((seal?.version ?? 0) !== before) return false;
      this.database.commit({ seal: { isSealed: seal?.isSealed ?? false, version: before + 1, bytes } });
      return true;
    });
  }

  markSealed(isSealed: boolean): Promise<void> {
    return this.#message('write', () => {
      const { seal } = this.database.contents;
      if (seal) this.database.commit({ seal: { ...seal, isSealed } });
    });
  }

  logConnection(store: string): SimLogConnection {
    const connection = new SimLogConnection(this, store);
    this.connections.push(connection);
    return connection;
  }

  rows(store: string, from: number, limit: number): Promise<readonly LogRow[]> {
    return this.#message('read', () => {
      const rows = this.database.rows(store).filter(({ seq }) => seq >= from);
      return rows.slice(0, limit);
    });
  }

  async alone(store: string, job: () => Promise<void>): Promise<boolean> {
    await this.wait(3);
    const name = `job ${store}`;
    if (this.database.isLocked(name)) return false;
    const lock = await this.database.lock(name);
    try {
      // Its connection may be lost meanwhile.
      if (this.faultOf('read') !== undefined) this.database.unlock(name, lock);
      await job();
      return true;
    } finally {
      this.database.unlock(name, lock);
    }
  }

  async replaceBehind(
    store: string,
    { seq, tag }: KnownRow,
    name: string,
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const whole = await wholeOf(bytes);
    await this.#message('write', () => {
      const { stores, files } = this.database.contents;
      const row = stores.get(store)?.rows.get(seq)?.row;
      if (!row || Buffer.compare(row.tag, tag) !== 0) throw new EngineError('retry');
      this.database.commit({ files: new Map(files).set(name, whole) });
    });
  }

  trim(
    store: string,
    { files: needed, seq, tag }: CoveredLog,
    keep: number,
    remove: readonly string[],
  ): Promise<boolean> {
    return this.#message('write', () => {
      const { database } = this;
      const { stores, files } = database.contents;
      const found = stores.get(store);
      const row = found?.rows.get(seq)?.row;
      if (!found || !row || Buffer.compare(row.tag, tag) !== 0 || !needed.every((name) => files.has(name)))
        return false;
      const kept = [...found.rows].filter(([place, { at }]) => place >= seq || at > database.now - keep);
      database.commit({
        stores: new Map(stores).set(store, { ...found, rows: new Map(kept) }),
        files: new Map([...files].filter(([name]) => this.#isHeld(store) || !remove.includes(name))),
      });
      return true;
    });
  }

  #isHeld(store: string): boolean {
    const { contents, now } = this.database;
    return [...contents.holds].some(([name, until]) => name.startsWith(`${store} `) && until > now);
  }

  hold(store: string, holder: string, milliseconds: number, begins: boolean): Promise<boolean> {
    return this.#message('write', () => {
      const { database } = this;
      const { holds } = database.contents;
      const name = `${store} ${holder}`;
      if (!begins && (holds.get(name) ?? 0) <= database.now) return false;
      database.commit({ holds: new Map(holds).set(name, database.now + milliseconds) });
      return true;
    });
  }

  letGo(store: string, holder: string): Promise<void> {
    return this.#message('write', () => {
      const holds = new Map(this.database.contents.holds);
      holds.delete(`${store} ${holder}`);
      this.database.commit({ holds });
    });
  }

  isHeld(store: string): Promise<boolean> {
    return this.#message('read', () => this.#isHeld(store));
  }

  #files(): WholeFiles {
    const read = <R>(run: (files: ReadonlyMap<string, Uint8Array>) => R): Promise<R> =>
      this.#message('read', () => run(this.database.contents.files));
    const need = (files: ReadonlyMap<string, Uint8Array>, name: string): Uint8Array => {
      const found = files.get(name);
      if (!found) throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
      return found;
    };
    const change = (run: (files: Map<string, Uint8Array>) => void): Promise<void> =>
      this.#message('write', () => {
        const files = new Map(this.database.contents.files);
        run(files);
        this.database.commit({ files });
      });
    return {
      list: (dir) =>
        read((files) =>
          [...files.keys()]
            .filter((name) => name.startsWith(`${dir}/`))
            .map((name) => name.slice(dir.length + 1))
            .sort(),
        ),
      exists: (name) => read((files) => files.has(name)),
      size: (name) => read((files) => need(files, name).length),
      read: (name) => read((files) => need(files, name).slice()),
      readAt: (name, offset, length) => read((files) => need(files, name).slice(offset, offset + length)),
      remove: (name) => change((files) => files.delete(name)),
      replace: async (name, bytes) => {
        const whole = await wholeOf(bytes);
        await change((files) => files.set(name, whole));
      },
    };
  }
}

/** A transaction under way, as the database sees it. */
interface SimTransaction {
  readonly lock: Locker;
  readonly era: number;
}

export class SimLogConnection implements LogConnection {
  readonly #engine: SimEngine;
  readonly #store: string;
  #transaction: SimTransaction | undefined;

  constructor(engine: SimEngine, store: string) {
    this.#engine = engine;
    this.#store = store;
  }

  get #database(): SimDatabase {
    return this.#engine.database;
  }

  /** Loses the connection; the database notices after a while, and ends its transaction. */
  drop(): void {
    const transaction = this.#transaction;
    this.#transaction = undefined;
    if (!transaction) return;
    void this.#someTurns(20).then(() => this.#database.unlock(this.#store, transaction.lock));
  }

  /** The database ends the transaction, because it was idle for too long; the node does not know yet. */
  expire(): void {
    if (this.#transaction) this.#database.unlock(this.#store, this.#transaction.lock);
  }

  async #someTurns(most: number): Promise<void> {
    for (let turns = this.#database.prng.int(most); turns > 0; turns--) await turn();
  }

  async begin(from: number): Promise<TurnStart> {
    if (this.#transaction) throw new Error('a turn began inside a turn');
    await this.#engine.wait(3);
    const fault = this.#engine.faultOf('begin');
    if (fault && fault !== 'answer')
      throw new EngineError(fault === 'later' || fault === 'request' ? 'unreachable' : fault);
    const start = await this.#locked(from);
    try {
      await this.#engine.wait(3);
      if (fault === 'answer') throw new EngineError('unreachable');
    } catch (error) {
      this.drop();
      throw error;
    }
    return start;
  }

  async #locked(from: number): Promise<TurnStart> {
    const database = this.#database;
    const { era } = database;
    const lock = await database.lock(this.#store);
    // The connection may be gone meanwhile, with its database or its node.
    if (database.era !== era || this.#engine.dead) {
      database.unlock(this.#store, lock);
      throw new EngineError('unreachable');
    }
    this.#transaction = { lock, era };
    return this.#look(from);
  }

  #look(from: number): TurnStart {
    const found = this.#database.contents.stores.get(this.#store);
    const rows = [...(found?.rows.values() ?? [])].map(({ row }) => row);
    const behind = rows.filter(({ seq }) => seq > from);
    return {
      tag: rows.find(({ seq }) => seq === from)?.tag,
      behind: behind.slice(0, this.#engine.database.rowsInTurn),
      hasMore: behind.length > this.#engine.database.rowsInTurn,
      protocol: found?.protocol ?? 0,
      now: this.#database.now,
      control: this.#control(),
      history: String(this.#database.era),
    };
  }

  #control(): Control {
    const { seal, stores } = this.#database.contents;
    const system = [...stores.values()].find(({ name }) => name === systemName);
    return {
      sealVersion: seal?.version ?? 0,
      isSealed: seal?.isSealed ?? false,
      systemSeq: Math.max(0, ...(system?.rows.keys() ?? [])),
    };
  }

  end(row: LogRow | undefined, again: number | undefined): TurnEnd {
    const transaction = this.#transaction;
    this.#transaction = undefined;
    // The node died in the middle of its turn.
    if (!transaction && this.#engine.dead) return { committed: unheard(), next: undefined };
    if (!transaction) throw new Error('a turn ended that had not begun');
    const done = this.#end(transaction, row);
    const next = again === undefined ? undefined : done.then(() => this.begin(again));
    next?.catch(() => {});
    return { committed: done, next };
  }

  async #end(transaction: SimTransaction, row: LogRow | undefined): Promise<void> {
    const fault = this.#engine.faultOf('end');
    const rollBack = (): void => this.#database.unlock(this.#store, transaction.lock);
    await this.#someTurns(3);
    if (fault === 'later') {
      // The message is still on its way when the connection is given up.
      void this.#someTurns(30).then(() => {
        this.#commit(transaction, row);
      });
      throw new EngineError('in-doubt');
    }
    if (fault === 'request') {
      void this.#someTurns(20).then(rollBack);
      throw new EngineError('in-doubt');
    }
    if (fault && fault !== 'answer') {
      rollBack();
      throw new EngineError(fault);
    }
    const did = this.#commit(transaction, row);
    await this.#engine.wait(3);
    if (fault === 'answer' || !did) throw new EngineError('in-doubt');
  }

  /** Commits as the database does: not if the transaction has ended. */
  #commit({ lock, era }: SimTransaction, row: LogRow | undefined): boolean {
    const database = this.#database;
    if (!lock.open || database.era !== era) return false;
    if (row) {
      const rows = database.contents.stores.get(this.#store)?.rows ?? new Map();
      // The primary key.
      if (rows.has(row.seq)) throw new Error(`row ${row.seq} is there already`);
      database.setRows(this.#store, new Map(rows).set(row.seq, { row, at: database.now }));
    }
    database.unlock(this.#store, lock);
    return true;
  }

  async abandon(): Promise<void> {
    const transaction = this.#transaction;
    this.#transaction = undefined;
    if (transaction) this.#database.unlock(this.#store, transaction.lock);
  }

  close(): Promise<void> {
    return this.abandon();
  }
}

async function wholeOf(bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  if (bytes instanceof Uint8Array) pieces.push(bytes);
  else for await (const piece of bytes) pieces.push(piece);
  return new Uint8Array(Buffer.concat(pieces));
}

async function unheard(): Promise<void> {
  throw new EngineError('in-doubt');
}
