// One seeded life of several nodes on a simulated engine: requests, lost messages, commits in doubt, nodes that die or
// stall, checkpoints that trim the log, failovers; at the end all faults cease and the history is judged.
import assert from 'node:assert/strict';
import { checkStore } from '../../src/store/check.ts';
import type { Store, StoreHold } from '../../src/store/port.ts';
import { activityInput, type NoteTables } from '../store/contract.ts';
import { MemoryFiles } from './memory-files.ts';
import type { Prng } from './prng.ts';
import { type Entry, judge, type Kind, logOf, type Op, quota } from './shared-judge.ts';
import { openShared, sharedOptions, simShared } from './shared-store.ts';
import { SimEngine, type SimFault } from './sim-engine.ts';
import { ChangingKeys, testStoreKeys } from './store-keys.ts';
import { sqlWasm } from './wasm.ts';

export const keys = ['k0', 'k1', 'k2'];
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

export interface SharedFaults {
  /** The engine may lose its last commits in a failover. */
  readonly loses?: boolean;
  /** Only this message, counted over all nodes after the start, meets this fault. Default: many messages do. */
  readonly only?: { readonly at: number; readonly fault: SimFault };
}

export interface SharedReport {
  answered: number;
  refused: number;
  unknown: number;
  faults: number;
  deaths: number;
  failovers: number;
  stalls: number;
  checkpoints: number;
  copies: number;
  rekeyings: number;
  lostBranches: number;
  lost: number;
}

interface Node {
  readonly engine: SimEngine;
  readonly later: (() => void)[];
  store: Store<NoteTables> | undefined;
}

export interface History {
  readonly ops: readonly Op[];
  readonly log: readonly Entry[];
  readonly report: SharedReport;
  /** Number of messages sent. */
  readonly messages: number;
}

export async function sharedRun(seed: number, faults: SharedFaults = {}): Promise<History> {
  const sim = await simShared({}, seed);
  return new SharedRun(sim, faults).life();
}

type Sim = Awaited<ReturnType<typeof simShared>>;

class SharedRun {
  readonly #sim: Sim;
  readonly #prng: Prng;
  readonly #faults: SharedFaults;
  readonly #ops: Op[] = [];
  readonly #working = new Set<Promise<void>>();
  readonly #report: SharedReport = {
    answered: 0,
    refused: 0,
    unknown: 0,
    faults: 0,
    deaths: 0,
    failovers: 0,
    stalls: 0,
    checkpoints: 0,
    copies: 0,
    rekeyings: 0,
    lostBranches: 0,
    lost: 0,
  };
  #nodes: Node[] = [];
  /** Dead nodes, whose code still runs here: their requests must end. */
  readonly #dead: Node[] = [];
  readonly #keys = new ChangingKeys();
  #clock = 0;
  #messages = 0;
  /** Messages from the first number up to the second may meet these faults. */
  #bad: readonly [number, number, readonly SimFault[]] = [0, 0, []];
  #isWell = false;

  constructor(sim: Sim, faults: SharedFaults) {
    this.#sim = sim;
    this.#prng = sim.generator;
    this.#faults = faults;
  }

  async life(): Promise<History> {
    // Sometimes a node is further behind than one turn shows.
    this.#sim.database.rowsInTurn = 2 + this.#prng.int(4);
    for (let i = 0; i < 3; i++) this.#nodes.push(this.#node());
    const steps = this.#faults.only ? 60 : 120 + this.#prng.int(120);
    for (let step = 0; step < steps; step++) {
      await this.#step();
      for (let turns = this.#prng.int(4); turns > 0; turns--) await this.#pass();
    }
    await this.#end();
    return { ops: this.#ops, log: await this.#judge(), report: this.#report, messages: this.#messages };
  }

  /** Advances time, and sometimes runs timers. */
  async #pass(): Promise<void> {
    await turn();
    this.#sim.database.now += this.#prng.int(3);
    this.#startStopped();
    for (const { later } of [...this.#nodes, ...this.#dead]) {
      if (this.#prng.chance(0.3)) for (const run of later.splice(0)) run();
    }
  }

  #node(): Node {
    const { database } = this.#sim;
    const engine: SimEngine = new SimEngine(database, { fault: () => this.#fault(engine) });
    const node: Node = { engine, later: [], store: undefined };
    void this.#open(node);
    return node;
  }

  async #open(node: Node): Promise<void> {
    const options = sharedOptions(node.engine, this.#prng, {
      keys: this.#keys,
      limits: {
        checkpointBytes: 2500,
        segmentRecords: 8,
        recoveryRetry: 1,
        checkpointRetry: 0,
        doubtMs: 300,
        doubtRetry: 1,
        poll: 50,
        keepRows: 40,
        holdMs: 200,
        turnMs: 1e9,
        turnRequests: 1 + this.#prng.int(6),
      },
      later: (_milliseconds, run) => void node.later.push(run),
      onEvent: ({ kind, cause }) => {
        if (kind === 'checkpoint') this.#report.checkpoints++;
        if (String(cause).includes('that this node had seen')) this.#report.lostBranches++;
        if (kind === 'commits-lost') this.#stopped.add(node);
        // No other failure in this run may look like damage.
        if (/corrupt|verify|is missing/.test(String(cause)) && !node.engine.dead) this.#damage ??= cause;
      },
    });
    while (!node.store && !node.engine.dead) {
      try {
        node.store = await openShared(options);
      } catch (error) {
        if (!isOutage(error) && !node.engine.dead) this.#damage ??= error;
        await turn();
      }
    }
  }

  #damage: unknown;
  /** Nodes that give up: the operator starts each again, with the remaining data. */
  readonly #stopped = new Set<Node>();

  #fault(engine: SimEngine): SimFault | undefined {
    if (engine.dead || this.#isWell) return undefined;
    const number = ++this.#messages;
    const { only } = this.#faults;
    const [from, before, kinds] = this.#bad;
    let fault: SimFault | undefined;
    if (only) fault = only.at === number ? only.fault : undefined;
    else if (number >= from && number < before && this.#prng.chance(0.5)) fault = this.#prng.pick(kinds);
    if (fault) this.#report.faults++;
    return fault;
  }

  async #step(): Promise<void> {
    const dice = this.#prng.next();
    if (this.#faults.only) {
      if (dice < 0.04) this.#checkpoint();
      else this.#start();
      return;
    }
    if (dice < 0.03) this.#checkpoint();
    else if (dice < 0.06) {
      const from = this.#messages + this.#prng.int(5);
      const kinds = this.#prng.pick<readonly SimFault[]>([
        ['request'],
        ['answer'],
        ['later'],
        ['read-only'],
        ['full', 'retry'],
        ['request', 'answer', 'later', 'retry'],
      ]);
      this.#bad = [from, from + 1 + this.#prng.int(8), kinds];
    } else if (dice < 0.07) this.#die();
    else if (dice < 0.08) this.#stall();
    else if (dice < 0.09) for (const connection of this.#prng.pick(this.#nodes).engine.connections) connection.expire();
    else if (dice < 0.095) this.#failover();
    else this.#start();
  }

  #checkpoint(): void {
    const { store } = this.#prng.pick(this.#nodes);
    if (!store) return;
    const dice = this.#prng.next();
    if (dice < 0.3) this.#work(this.#copy(store));
    else if (dice < 0.5) this.#work(this.#rekey(store));
    else this.#work(store.checkpoint().catch(() => {}));
  }

  /** All nodes learn of the new key at once; the old one is retired when nothing needs it. */
  async #rekey(store: Store<NoteTables>): Promise<void> {
    const epoch = ++this.#keys.epoch;
    try {
      const needed = await store.reseal();
      // A database that loses its last commits may also lose the seal without the old key.
      if (this.#faults.loses || this.#keys.epoch !== epoch) return;
      assert.deepEqual(needed, [epoch], 'what is still needed');
      this.#keys.retired = epoch - 1;
      this.#report.rekeyings++;
    } catch (error) {
      if (!isOutage(error) && !(this.#faults.loses && String(error).includes('is missing'))) this.#damage ??= error;
    }
  }

  /** Copies as a backup does; the result is a store whose chain verifies, or nothing. */
  async #copy(store: Store<NoteTables>): Promise<void> {
    let hold: StoreHold | undefined;
    const files = new MemoryFiles();
    try {
      hold = await store.hold(true);
      for (const { name, bytes } of hold?.files ?? []) {
        await files.replace(name, (await hold?.source.readAt(name, 0, bytes)) ?? new Uint8Array());
        await turn();
      }
    } catch (error) {
      // A database that loses its last commits may lose a segment, which a backup then leaves out.
      if (!isOutage(error) && !(this.#faults.loses && String(error).includes('ENOENT'))) this.#damage ??= error;
      return;
    } finally {
      hold?.release();
    }
    try {
      const keys = testStoreKeys('test', this.#keys.epoch);
      const checked = await checkStore({ files, dir: 'notes', keys, wasm: sqlWasm });
      assert.deepEqual([checked.tables, checked.activity], [hold?.tables, hold?.activity], 'what is in a copy');
      this.#report.copies++;
    } catch (error) {
      this.#damage ??= error;
    }
  }

  #die(): void {
    this.#startAnew(this.#prng.int(this.#nodes.length));
    this.#report.deaths++;
  }

  #startStopped(): void {
    for (const node of this.#stopped) this.#startAnew(this.#nodes.indexOf(node));
    this.#stopped.clear();
  }

  #startAnew(at: number): void {
    const node = this.#nodes[at];
    if (!node) return;
    node.engine.kill();
    this.#dead.push(node);
    this.#nodes[at] = this.#node();
  }

  /** Stalls a node for longer than rows are kept; the database ends its transaction meanwhile. */
  #stall(): void {
    const { engine } = this.#prng.pick(this.#nodes);
    const resume = engine.stall();
    this.#report.stalls++;
    this.#work(
      (async () => {
        for (let turns = 5 + this.#prng.int(60); turns > 0; turns--) await turn();
        for (const connection of engine.connections) connection.expire();
        this.#sim.database.now += this.#prng.pick([0, 100]);
        for (let turns = this.#prng.int(60); turns > 0; turns--) await turn();
        resume();
      })(),
    );
  }

  #failover(): void {
    const { database } = this.#sim;
    const most = Math.min(5, database.commits - this.#base);
    const lost = this.#faults.loses ? this.#prng.int(Math.max(1, most)) : 0;
    database.failover(lost);
    this.#report.failovers++;
    if (lost > 0) for (const op of this.#ops) op.mayBeLost = true;
  }

  /** The first commits, which make the store itself and are never lost. */
  readonly #base = 3;

  #work(job: Promise<void>): void {
    this.#working.add(job);
    void job.then(() => this.#working.delete(job));
  }

  #start(): void {
    const node = this.#prng.pick(this.#nodes);
    const { store } = node;
    if (!store) return;
    const dice = this.#prng.next();
    const kind: Kind = dice < 0.5 ? 'encrypt' : dice < 0.7 ? 'switch' : dice < 0.8 ? 'make' : 'look';
    const number = this.#ops.length + 1;
    const name = kind === 'make' ? `r${number}` : this.#prng.pick(keys);
    const op: Op = { number, kind, name, on: this.#prng.int(2), from: ++this.#clock };
    this.#ops.push(op);
    this.#work(this.#ask(node, store, op));
  }

  async #ask({ engine }: Node, store: Store<NoteTables>, op: Op): Promise<void> {
    try {
      const answer = await (op.kind === 'look' ? looks(store, op) : does(store, op));
      // A dead node's answer reaches no client.
      if (engine.dead) return;
      op.answer = answer;
      this.#report.answered++;
    } catch (error) {
      if (engine.dead) return;
      if (!isOutage(error)) this.#damage ??= error;
      op.refused = !String(error).includes('not known');
      this.#report[op.refused ? 'refused' : 'unknown']++;
    }
    op.until = ++this.#clock;
  }

  /** Ends all faults, and then the life. */
  async #end(): Promise<void> {
    this.#isWell = true;
    const isBusy = (): boolean =>
      this.#working.size > 0 || this.#nodes.some(({ store }) => store === undefined || !store.status().writable);
    for (let turns = 0; isBusy(); turns++) {
      assert.ok(turns < 3000, `what was begun does not end: ${this.#stuck()}`);
      await turn();
      this.#sim.database.now++;
      this.#startStopped();
      for (const { later } of [...this.#nodes, ...this.#dead]) for (const run of later.splice(0)) run();
      if (turns % 100 === 99) for (const { store } of this.#nodes) if (store) await settle(store, this.#nodes);
    }
  }

  #stuck(): string {
    const nodes = this.#nodes.map(({ store }) => (store ? (store.status().reason ?? 'well') : 'not open'));
    return `${nodes.join(', ')}; ${this.#working.size} under way`;
  }

  async #judge(): Promise<readonly Entry[]> {
    if (this.#damage) throw this.#damage;
    const fresh = this.#node();
    this.#nodes.push(fresh);
    await this.#end();
    const stores = this.#nodes.flatMap(({ store }) => store ?? []);
    const logs = await Promise.all(stores.map(logOf));
    const [first] = logs;
    assert.ok(first);
    for (const { head } of logs) assert.equal(head, first.head, 'all nodes have the same chain');
    const { rings, granted } = judge(this.#ops, first.entries);
    this.#report.lost = this.#ops.filter(({ mayBeLost, answer, kind, number }) => {
      return mayBeLost && answer !== undefined && kind !== 'look' && !first.entries.some((e) => e.number === number);
    }).length;
    const tables = await Promise.all(stores.map((store) => store.transaction((tx) => tx.notes.all())));
    const sizes = await Promise.all(
      stores.map((store) => store.transaction((tx) => keys.map((key) => tx.notes.counted(key)))),
    );
    for (const [i, notes] of tables.entries()) {
      const plain = (all: typeof notes) => all.map(({ seq, name, value }) => [seq, name, value]);
      assert.deepEqual(plain(notes), plain(tables[0] ?? []), 'all nodes have the same tables');
      assert.equal(notes.filter(({ name }) => name.startsWith('r')).length, rings, 'the rings');
      assert.ok(rings <= quota);
      assert.deepEqual(
        sizes[i],
        keys.map((key) => (notes.some(({ name }) => name === key) ? (granted.get(key) ?? 0) : 0)),
        'what was counted',
      );
    }
    for (const store of stores) await store.close();
    return first.entries;
  }
}

/** Sends a request that makes a node continue whose last turn failed. */
async function settle(store: Store<NoteTables>, nodes: readonly Node[]): Promise<void> {
  let isDone = false;
  const asked = store
    .transaction(() => {})
    .then(
      () => {
        isDone = true;
      },
      () => {
        isDone = true;
      },
    );
  for (let turns = 0; !isDone && turns < 300; turns++) {
    await turn();
    for (const { later } of nodes) for (const run of later.splice(0)) run();
  }
  if (isDone) await asked;
}

export function does(store: Store<NoteTables>, { number, kind, name, on = 1 }: Op): Promise<number> {
  return store.transaction((tx) => {
    const { notes } = tx;
    let status = 200;
    if (kind === 'encrypt') {
      const key = notes.remembered(name);
      if (key && key.value === 0) status = 403;
      else {
        if (!key) notes.add(name, 1);
        notes.count(name);
      }
    } else if (kind === 'switch') {
      if (notes.remembered(name)) notes.set(name, on);
      else notes.add(name, on);
    } else {
      const rings = notes.all().filter((note) => note.name.startsWith('r'));
      if (rings.length >= quota) status = 409;
      else notes.add(name);
    }
    tx.record(activityInput(`act_${number}`, { keyid: name, action: kind, ringname: String(on), status }));
    return status;
  });
}

/** Reads without a record: in a transaction, by a peek, or by searching for the last switch. */
export async function looks(store: Store<NoteTables>, { name, number }: Op): Promise<number> {
  if (number % 3 === 0) {
    const filter = { keyids: [name], action: 'switch' };
    const [found] = (await store.activity.search(filter, { limit: 1 })).items;
    return found ? Number(found.ringname) : 1;
  }
  const look = ({ notes }: NoteTables): number => {
    const note = notes.remembered(name);
    return note ? Number(note.value) : 1;
  };
  return store.transaction(look);
}

export function isOutage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'unavailable';
}
