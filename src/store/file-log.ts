// FileLog makes groups of transactions durable in log files, one group at a time: while one is being synced, the next
// one fills. It also moves on to a new file when a checkpoint needs the old one closed.
import { KmsError, systemRefusal } from '../errors.ts';
import type { Mark } from '../model/store-mark.ts';
import { Group, Numbering } from './commit-group.ts';
import { FileLost, isRefusedWrite } from './files.ts';
import type { Log, LogEvents } from './journal.ts';
import { type BrokenLog, createLog, type LogContext, type LogWriter } from './log-file.ts';
import { logHeaderLength } from './log-format.ts';
import type { Written } from './session.ts';
import { logName } from './store-files.ts';

export interface ClosedLog {
  readonly generation: number;
  readonly bytes: number;
  /** The tag of its last record, at its end. */
  readonly chain: Uint8Array;
}

export class FileLog implements Log {
  readonly #context: LogContext;
  readonly uid: Uint8Array;
  readonly #events: LogEvents;
  #writer: LogWriter;
  #closed: readonly ClosedLog[];
  #numbering = new Numbering();
  #filling = new Group(this.#numbering);
  #syncing: Group | undefined;
  #running: Promise<void> | undefined;
  #rotation: PromiseWithResolvers<number> | undefined;
  /** Whether the failed write was refused before it began. */
  #isUntouched = false;
  #failure: KmsError | undefined;
  /** Whether anything was written yet: the records of one opening form one run. */
  #hasBegun = false;

  constructor(
    context: LogContext,
    uid: Uint8Array,
    writer: LogWriter,
    closed: readonly ClosedLog[],
    events: LogEvents,
  ) {
    this.#context = context;
    this.uid = uid;
    this.#writer = writer;
    this.#closed = closed;
    this.#events = events;
  }

  get writer(): LogWriter {
    return this.#writer;
  }

  /** The log files since the snapshot, except the current one. */
  get closed(): readonly ClosedLog[] {
    return this.#closed;
  }

  /** Bytes of the log files since the snapshot. */
  get bytes(): number {
    return this.#closed.reduce((sum, log) => sum + log.bytes, this.#writer.place.offset);
  }

  get generation(): number {
    return this.#writer.generation;
  }

  get sequence(): number {
    return this.#writer.place.sequence;
  }

  get mark(): Mark {
    return this.#writer.place;
  }

  /** The position at which the log broke; undefined while it works, or if no bytes of ours have to be removed. */
  get broken(): BrokenLog | undefined {
    if (!this.#failure || this.#isUntouched) return undefined;
    const { generation, place, syncFailed } = this.#writer;
    return { generation, place, syncFailed };
  }

  /** Adds a transaction to the next group; resolves when it is durable. */
  add(written: Written): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    const group = this.#filling;
    group.add(written);
    this.#start();
    return group.done;
  }

  /** Resolves when everything added so far is durable; undefined if it already is. */
  durable(): Promise<void> | undefined {
    if (this.#failure) return Promise.reject(this.#failure);
    return this.#filling.count > 0 ? this.#filling.done : this.#syncing?.done;
  }

  /**
   * Closes the log file, unless it is empty, after everything added so far. Returns the number of the last closed one.
   */
  rotate(): Promise<number> {
    if (this.#failure) return Promise.reject(this.#failure);
    const { place, generation } = this.#writer;
    const isEmpty = place.offset === logHeaderLength && this.durable() === undefined;
    if (isEmpty) return Promise.resolve(generation - 1);
    if (!this.#rotation) {
      this.#rotation = Promise.withResolvers<number>();
      this.#start();
    }
    return this.#rotation.promise;
  }

  /** Drops the log files up to `generation` from `closed`: a snapshot now covers them. */
  forget(generation: number): void {
    this.#closed = this.#closed.filter((log) => log.generation > generation);
  }

  /** Waits for the work under way, or until its callers have been rejected, then closes the file as it is. */
  async release(): Promise<void> {
    while (this.#running) await this.#running;
    if (!this.#failure) await this.#writer.close();
  }

  /** Also removes the preallocated room after the last record. */
  async close(): Promise<void> {
    while (this.#running) await this.#running;
    // If this fails, the next start removes the room.
    if (!this.#failure) await this.#writer.trim().catch(() => {});
    await this.release();
  }

  #start(): void {
    // Waits one turn of the event loop, so that everything from one read of the sockets goes into one group.
    this.#running ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#run());
  }

  async #run(): Promise<void> {
    while (!this.#failure && (this.#filling.count > 0 || this.#rotation)) {
      const rotation = this.#rotation;
      const group = this.#filling;
      // If this file is to be closed, later transactions go into the next one.
      if (rotation) this.#numbering = new Numbering();
      this.#filling = new Group(this.#numbering);
      if (group.count > 0 && !(await this.#write(group))) break;
      if (rotation) await this.#rotate(rotation);
    }
    this.#running = undefined;
  }

  async #write(group: Group): Promise<boolean> {
    this.#syncing = group;
    const started = performance.now();
    const begins = !this.#hasBegun;
    let syncMs: number;
    try {
      syncMs = await this.#writer.append(group.payload(begins), { transactions: group.count, begins });
    } catch (cause) {
      await this.#fail(cause);
      return false;
    }
    this.#hasBegun = true;
    this.#syncing = undefined;
    group.resolve();
    this.#events.onDurable({ transactions: group.count, ms: performance.now() - started, syncMs });
    return true;
  }

  async #rotate(rotation: PromiseWithResolvers<number>): Promise<void> {
    const { generation, place } = this.#writer;
    const { sequence, chain, runs } = place;
    let next: LogWriter;
    try {
      await this.#writer.trim();
      next = await createLog(this.#context, { uid: this.uid, generation: generation + 1, sequence, chain, runs });
    } catch (cause) {
      // The old file may only be continued if it is certain that no new one follows it.
      const name = logName(this.#context.dir, generation + 1);
      const gone = await this.#context.files.exists(name).then(
        (exists) => !exists,
        () => false,
      );
      if (!gone) return this.#fail(cause);
      this.#rotation = undefined;
      rotation.reject(cause);
      return;
    }
    await this.#writer.close();
    this.#closed = [...this.#closed, { generation, bytes: place.offset, chain: place.chain }];
    this.#writer = next;
    this.#rotation = undefined;
    rotation.resolve(generation);
  }

  async #fail(cause: unknown): Promise<void> {
    const failure = notDurable(cause, isRefusedWrite(cause));
    this.#failure = failure;
    this.#events.onFailure(cause);
    // Another process's records may have been acknowledged, so they are recovered, not cut off.
    if (cause instanceof FileLost && cause.isUntouched) this.#isUntouched = true;
    const isGone = this.#isUntouched ? await this.#writer.close().then(() => true) : await this.#writer.takeBack();
    this.#syncing?.reject(isGone ? failure : notDurable(cause, false));
    this.#filling.reject(failure);
    this.#rotation?.reject(failure);
  }
}

/**
 * `leftNothing`: the write was refused as a whole, so the same request may be sent again. If the file was lost, the
 * store is out of service for this request and for the next.
 */
function notDurable(cause: unknown, leftNothing: boolean): KmsError {
  const [reason] = systemRefusal(cause) ?? [];
  const why = reason === undefined ? '' : `: ${reason}`;
  const message = `the request could not be made durable and was taken back${why}`;
  return new KmsError(leftNothing || cause instanceof FileLost ? 'unavailable' : 'internal', message, {
    hint: reason === undefined ? 'try again; the log of the server says what failed' : 'fix that and try again',
    cause,
  });
}
