// Simulated places for a store of notes, one for each journal: a machine with a disk, and a node at a database. Either
// crashes at a step, and fails at steps for a while.
import type { KmsError } from '../../src/errors.ts';
import type { Store } from '../../src/store/port.ts';
import { createShared } from '../../src/store/shared/row-journal.ts';
import type { NoteTables } from '../store/contract.ts';
import { createTestStore, openEmbedded, testOptions } from './embedded-store.ts';
import type { Prng } from './prng.ts';
import { openShared, sharedOptions, sharedUid } from './shared-store.ts';
import { SimDatabase, SimEngine, type SimFault } from './sim-engine.ts';
import { SimFiles, type Step } from './sim-files.ts';
import { testStoreKeys } from './store-keys.ts';

type More = Pick<Parameters<typeof testOptions>[2] & object, 'limits' | 'later' | 'onEvent'>;

export interface SimPlace {
  readonly crashed: boolean;
  create(): Promise<void>;
  open(more: More): Promise<Store<NoteTables>>;
  /** After a crash, or a power failure now: the same place, which crashes at that step of its own; absent = never. */
  restart(crashAt?: number): SimPlace;
  /** Makes some of the next steps fail. */
  failAWhile(): void;
  failNoMore(): void;
  /** Whether an error leaves open whether the request was done. */
  isUnknown(error: unknown): boolean;
}

export class DiskPlace implements SimPlace {
  readonly #prng: Prng;
  readonly #files: SimFiles;

  constructor(prng: Prng, files = new SimFiles({ prng })) {
    this.#prng = prng;
    this.#files = files;
  }

  get crashed(): boolean {
    return this.#files.crashed;
  }

  create(): Promise<void> {
    return createTestStore(this.#files, this.#prng);
  }

  open(more: More): Promise<Store<NoteTables>> {
    return openEmbedded(testOptions(this.#files, this.#prng, more));
  }

  restart(crashAt?: number): SimPlace {
    const prng = this.#prng;
    return new DiskPlace(prng, this.#files.restart(crashAt === undefined ? { prng } : { prng, crashAt }));
  }

  failAWhile(): void {
    const from = this.#files.steps + this.#prng.int(6);
    const until = from + 1 + this.#prng.int(6);
    const code = this.#prng.pick(['EIO', 'ENOSPC']);
    const kinds: readonly Step[] = this.#prng.pick([
      ['append'],
      ['sync'],
      ['append', 'sync', 'truncate'],
      ['create', 'rename', 'syncDir'],
      ['append', 'sync', 'truncate', 'create', 'rename', 'syncDir', 'remove', 'read'],
    ]);
    this.#files.failure = (step, number) =>
      number >= from && number < until && kinds.includes(step) ? code : undefined;
  }

  failNoMore(): void {
    this.#files.failure = undefined;
  }

  isUnknown(): boolean {
    return false;
  }
}

export class DatabasePlace implements SimPlace {
  readonly #prng: Prng;
  readonly #engine: SimEngine;
  #failing: { readonly from: number; readonly until: number; readonly fault: SimFault } | undefined;

  constructor(prng: Prng, database = new SimDatabase(prng), crashAt = Number.POSITIVE_INFINITY) {
    this.#prng = prng;
    this.#engine = new SimEngine(database, {
      fault: (number) => {
        if (number >= crashAt) this.#engine.kill();
        if (this.#failing && number >= this.#failing.from && number < this.#failing.until) return this.#failing.fault;
        return undefined;
      },
    });
  }

  get crashed(): boolean {
    return this.#engine.dead;
  }

  async create(): Promise<void> {
    const random = (length: number) => this.#prng.bytes(length);
    await createShared({ engine: this.#engine, uid: sharedUid, keys: testStoreKeys(), random });
  }

  open({ limits, ...more }: More): Promise<Store<NoteTables>> {
    // Nothing waits for an answer that is not there.
    const rows = { ...limits, doubtMs: 0, keepRows: 0 };
    return openShared(sharedOptions(this.#engine, this.#prng, { ...more, limits: rows }));
  }

  restart(crashAt?: number): SimPlace {
    this.#engine.kill();
    return new DatabasePlace(this.#prng, this.#engine.database, crashAt);
  }

  failAWhile(): void {
    const from = this.#engine.messages + this.#prng.int(6);
    const until = from + 1 + this.#prng.int(6);
    this.#failing = { from, until, fault: this.#prng.pick(['request', 'answer', 'later', 'retry', 'full'] as const) };
  }

  failNoMore(): void {
    this.#failing = undefined;
  }

  isUnknown(error: unknown): boolean {
    return /not known whether/.test(String((error as KmsError).message));
  }
}
