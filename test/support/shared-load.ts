// Clients of nodes on a real database: each sends its next request once the last is answered, and their observations
// are judged by the log. Run as a program, it is a node that can be killed or stopped; its argument is JSON of `Alone`,
// and it prints each request and each answer on a line.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import type { Store, StoreEvent } from '../../src/store/port.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { createShared, type SharedOptions } from '../../src/store/shared/row-journal.ts';
import { contractMigrations, type NoteTables, noteTables } from '../store/contract.ts';
import { prng } from './prng.ts';
import { judge, logOf, type Op } from './shared-judge.ts';
import { does, isOutage, keys, looks } from './shared-run.ts';
import { openShared } from './shared-store.ts';
import { testStoreKeys } from './store-keys.ts';
import { sqlWasm } from './wasm.ts';

type Engine = Awaited<ReturnType<typeof openPostgres>>;
type Address = Parameters<typeof openPostgres>[0];

export async function createStore(engine: Engine): Promise<Uint8Array> {
  const uid = new Uint8Array(randomBytes(16));
  await createShared({ engine, uid, keys: testStoreKeys(), random: (length) => new Uint8Array(randomBytes(length)) });
  return uid;
}

export function storeOptions(engine: Engine, uid: Uint8Array): SharedOptions<NoteTables> {
  return {
    engine,
    uid,
    dir: 'notes',
    keys: testStoreKeys(),
    wasm: sqlWasm,
    migrations: contractMigrations,
    tables: noteTables,
    limits: { segmentRecords: 2, checkpointBytes: 20_000, recoveryRetry: 20, doubtRetry: 20, keepRows: 1000 },
  };
}

/** A node with a database connection of its own, and its events. */
export interface SharedNode {
  readonly store: Store<NoteTables>;
  readonly events: readonly StoreEvent[];
  close(): Promise<void>;
}

export async function openNode(
  config: Address,
  uid: Uint8Array,
  limits: SharedOptions<NoteTables>['limits'] = {},
): Promise<SharedNode> {
  const engine = await openPostgres(config);
  const events: StoreEvent[] = [];
  const options = storeOptions(engine, uid);
  const store = await openShared({
    ...options,
    limits: { ...options.limits, segmentRecords: 64, ...limits },
    onEvent: (event) => events.push(event),
  });
  const close = async (): Promise<void> => {
    await store.close();
    await engine.close();
  };
  return { store, events, close };
}

/** Sends requests to a store, for `SharedLoad`. */
export function asking(store: Store<NoteTables>): (op: Op) => Promise<number> {
  return (op) => (op.kind === 'look' ? looks(store, op) : does(store, op));
}

/** One clock for all processes of the machine. */
export function now(): number {
  return Number(process.hrtime.bigint());
}

/** Clients of nodes in this process, and their observations. */
export class SharedLoad {
  readonly ops: Op[] = [];
  readonly #generator = prng(1);
  readonly #first: number;
  readonly #say: (op: Op) => void;
  readonly #working: Promise<void>[] = [];
  #isOver = false;

  /** `first` is the number of the first request; `say` is called with each request, and again once it is answered. */
  constructor(first = 1, say: (op: Op) => void = () => {}) {
    this.#first = first;
    this.#say = say;
  }

  /** Starts clients. `ask` returns a status, or the value seen, and fails with `unavailable`. */
  clients(ask: (op: Op) => Promise<number>, count: number): void {
    for (let i = 0; i < count; i++) this.#working.push(this.#client(ask));
  }

  async #client(ask: (op: Op) => Promise<number>): Promise<void> {
    const generator = this.#generator;
    while (!this.#isOver) {
      const kind = generator.pick(['encrypt', 'encrypt', 'encrypt', 'switch', 'make', 'look'] as const);
      const number = this.#first + this.ops.length;
      const name = kind === 'make' ? `r${number}` : generator.pick(keys);
      const op: Op = { number, kind, name, on: generator.int(2), from: now() };
      this.ops.push(op);
      this.#say(op);
      try {
        op.answer = await ask(op);
      } catch (error) {
        if (!isOutage(error)) throw error;
        op.refused = !String(error).includes('not known');
        await wait(20);
      }
      op.until = now();
      this.#say(op);
    }
  }

  /** Stops the clients; resolves when the last one has its answer. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#working);
  }

  /** The number of answered requests among those sent since then. */
  answered(since = 0): number {
    return this.ops.filter(({ from, answer }) => from >= since && answer !== undefined).length;
  }

  get refused(): number {
    return this.ops.filter(({ refused }) => refused).length;
  }

  /** The longest time without any answer, in milliseconds. */
  get silence(): number {
    const times = this.ops.filter(({ answer }) => answer !== undefined).map(({ until = 0 }) => until);
    const sorted = times.sort((a, b) => a - b);
    return Math.max(...sorted.slice(1).map((time, at) => time - (sorted[at] ?? time))) / 1e6;
  }
}

/**
 * Judges the clients' observations by the log, which must be the same on all nodes. Returns the numbers of the requests
 * in it.
 */
export async function judgeNodes(stores: readonly Store<NoteTables>[], ops: readonly Op[]): Promise<Set<number>> {
  const logs = await Promise.all(stores.map(logOf));
  for (const { head } of logs) assert.equal(head, logs[0]?.head, 'all nodes have the same chain');
  const entries = logs[0]?.entries ?? [];
  judge(ops, entries);
  return new Set(entries.map(({ number }) => number));
}

interface Alone {
  readonly config: Address;
  readonly uid: string;
  readonly first: number;
  readonly clients: number;
}

/** A node with its clients as a process of its own. */
export class SharedProcess {
  readonly child: ChildProcess;
  readonly #ops = new Map<number, Op>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended: Promise<unknown>;
  #said = '';

  private constructor(given: Alone) {
    this.child = spawn(process.execPath, [import.meta.filename, JSON.stringify(given)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#ended = once(this.child, 'close').then(() => this.#ready.reject(new Error(`the node ended: ${this.#said}`)));
    this.child.stderr?.on('data', (text) => {
      this.#said += text;
    });
    // Cast: the second pipe is one to read from.
    createInterface({ input: this.child.stdout as NonNullable<ChildProcess['stdout']> }).on('line', (line) => {
      const op: Op = JSON.parse(line);
      this.#ops.set(op.number, op);
      this.#ready.resolve();
    });
  }

  static async start(config: Address, uid: Uint8Array, first: number, clients: number): Promise<SharedProcess> {
    const started = new SharedProcess({ config, uid: Buffer.from(uid).toString('hex'), first, clients });
    await started.#ready.promise;
    return started;
  }

  /** Requests and answers it has printed so far. */
  get ops(): readonly Op[] {
    return [...this.#ops.values()];
  }

  /** Ends its clients, and then the process. */
  async stop(): Promise<void> {
    this.child.stdin?.end();
    await this.#ended;
    assert.equal(this.child.exitCode, 0, this.#said);
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#ended;
  }

  /** A failing test must not wait for it, least of all while it is stopped. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

if (import.meta.main) {
  const { config, uid, first, clients }: Alone = JSON.parse(process.argv[2] ?? '');
  const node = await openNode(config, new Uint8Array(Buffer.from(uid, 'hex')));
  const load = new SharedLoad(first, (op) => writeSync(1, `${JSON.stringify(op)}\n`));
  load.clients(asking(node.store), clients);
  await once(process.stdin.resume(), 'end');
  await load.stop();
  await node.close();
}
