// FileJournal is a journal of local files that this process has to itself: log files, each closed by a checkpoint,
// snapshots and activity segments.
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import { type ActivityLog, emptyHead } from './activity/activity-log.ts';
import { droppedFiles } from './activity/dropped.ts';
import { segmentPath } from './activity/segment.ts';
import type { CheckpointJob, CheckpointResult } from './checkpoint.ts';
import { FileLog } from './file-log.ts';
import { type FileEnd, recoverFiles, type StoreDirectory } from './file-recovery.ts';
import { FileLost, type Files } from './files.ts';
import type { Journal, JournalOwner, LogEvents, Served, StoreOptions } from './journal.ts';
import { needAllKnown, needEnd } from './known-end.ts';
import { continueLog, createLog, type LogContext, repairLog } from './log-file.ts';
import { logHeaderLength } from './log-format.ts';
import type { ReadStore, StoreEvent, StoreHold } from './port.ts';
import type { Recovered, RecoverOptions } from './recover.ts';
import { SerialQueue } from './serial-queue.ts';
import { writeSnapshot } from './snapshot.ts';
import { readStore, storeWorld } from './store.ts';
import {
  decodeFileHeader,
  headerLength,
  listStoreFiles,
  logName,
  type StoreKeys,
  snapshotName,
  tagLength,
  uidLength,
} from './store-files.ts';

interface FileJournalOptions extends StoreDirectory {
  readonly random?: ((length: number) => Uint8Array) | undefined;
  readonly onEvent?: ((event: StoreEvent) => void) | undefined;
}

export class FileJournal implements Journal<FileLog, FileEnd> {
  readonly files: Files;
  readonly dir: string;
  readonly keys: StoreKeys;
  readonly hasTurn = true;
  readonly poll = undefined;
  readonly trouble = undefined;
  readonly words = { failed: 'a write failed', mended: 'the store was recovered from the disk and writes again' };
  readonly #uid: Uint8Array | undefined;
  readonly #context: LogContext;
  readonly #onEvent: (event: StoreEvent) => void;
  #stopped = false;
  /** The number of holds on the files, and the generation up to which files are removed once there is no hold. */
  #holders = 0;
  #superseded: number | undefined;
  readonly #removing = new SerialQueue();
  #waiting: (() => void)[] = [];

  constructor({ files, dir, keys, uid, random = systemRandom, onEvent = () => {} }: FileJournalOptions) {
    this.files = files;
    this.dir = dir;
    this.keys = keys;
    this.#uid = uid;
    this.#context = { files, dir, keys, random };
    this.#onEvent = onEvent;
  }

  kindOf(cause: unknown): StoreEvent['kind'] | undefined {
    return cause instanceof FileLost ? 'log-lost' : undefined;
  }

  recover(options: RecoverOptions): Promise<Recovered<FileEnd>> {
    return recoverFiles({ ...this.#context, uid: this.#uid }, options);
  }

  async recoverFrom(log: FileLog, options: RecoverOptions): Promise<Recovered<FileEnd>> {
    const { generation, place } = log.writer;
    // Before any change, so that a file that was cut stays as it was found.
    await needEnd(this.#context, { generation, place });
    if (log.broken) await repairLog(this.#context, log.uid, log.broken);
    const recovered = await this.recover(options);
    try {
      needAllKnown(this.dir, recovered.log, { generation, place });
      return recovered;
    } catch (error) {
      recovered.state.close();
      throw error;
    }
  }

  /** Cuts off a torn end, and removes what a crash left of other files. */
  async open(
    { uid, activity, snapshot, log }: Recovered<FileEnd>,
    events: LogEvents,
    before?: FileLog,
  ): Promise<FileLog> {
    if (!before) {
      const { leftovers } = await listStoreFiles(this.files, this.dir);
      for (const name of leftovers) await this.files.remove(name);
    }
    const writer = await continueLog(this.#context, log.header, log.place);
    if (log.torn > 0) {
      const what = `cut off ${log.torn} bytes at offset ${log.offset}, a write that was never acknowledged`;
      this.#onEvent({ kind: 'torn-tail', message: `${log.name}: ${what}` });
    }
    // Remains of an interrupted checkpoint; if this fails, they only cost space.
    if (!before) await this.#removeUpTo(snapshot.generation, activity).catch(() => {});
    return new FileLog(this.#context, uid, writer, log.closed, events);
  }

  async begin(): Promise<true> {
    return true;
  }

  async end(): Promise<void> {}

  async alone(job: () => Promise<void>): Promise<boolean> {
    await job();
    return true;
  }

  async adoptNewer(): Promise<undefined> {}

  async covered({ log, activity }: Served<FileLog>): Promise<Pick<CheckpointJob, 'through' | 'chain' | 'known'>> {
    await this.#needLog(log);
    const through = await log.rotate();
    const chain = log.closed.find(({ generation }) => generation === through)?.chain;
    return { through, ...(chain && { chain }), known: activity.segments.at(-1)?.lastSeq ?? 0 };
  }

  /** Throws `FileLost` unless each log file still has its known end. */
  async #needLog({ closed, writer: { generation, place } }: FileLog): Promise<void> {
    const ends = closed.map((log) => ({ generation: log.generation, place: { offset: log.bytes, chain: log.chain } }));
    for (const end of [...ends, { generation, place }]) await needEnd(this.#context, end);
  }

  async supersede(
    { generation }: CheckpointResult,
    owner: JournalOwner<FileLog>,
    adopt: (live: Served<FileLog>) => void,
  ): Promise<boolean> {
    adopt(await owner.serving());
    this.#superseded = generation;
    await this.#removeSuperseded(owner);
    return true;
  }

  /** One removal at a time: two at once would list the same files and both remove them. */
  #removeSuperseded(owner: JournalOwner<FileLog>): Promise<void> {
    return this.#removing.run(async () => {
      const through = this.#superseded;
      if (this.#holders > 0 || through === undefined) return;
      this.#superseded = undefined;
      await this.#removeUpTo(through, (await owner.serving()).activity);
    });
  }

  /**
   * Removes the files that the durable snapshot `generation` replaces, and the dropped segments unless they are being
   * read. Files left over are removed next time.
   */
  async #removeUpTo(generation: number, { dropped, isRead }: Pick<ActivityLog, 'dropped' | 'isRead'>): Promise<void> {
    const { files, dir } = this;
    const { snapshots, logs } = await listStoreFiles(files, dir);
    for (const number of snapshots) if (number < generation) await files.remove(snapshotName(dir, number));
    for (const number of logs) if (number <= generation) await files.remove(logName(dir, number));
    if (!dropped || isRead) return;
    for (const name of droppedFiles(await files.list(dir), dropped)) await files.remove(segmentPath(dir, name));
  }

  /**
   * Between transactions, and after the sync under way, so that the commit is the state's latest. No writer waits for
   * the copy: later writes go after the held part, or to other files.
   */
  async hold(owner: JournalOwner<FileLog>, counted: boolean): Promise<StoreHold> {
    await (await owner.serving()).activity.hashed();
    return owner.inTurn(async (live) => {
      // Tallies may stand for rows that the tables do not have yet.
      if (counted) await live.session.runCounts();
      const release = this.#keepFiles(owner);
      try {
        await live.log.durable();
        // No await until the list is complete: a checkpoint that ends replaces logs with a new snapshot.
        const held = this.#filesOf(live, counted, release);
        await this.#needLog(live.log);
        return held;
      } catch (error) {
        release();
        throw error;
      }
    });
  }

  #filesOf({ snapshot, activity, log, uid, state }: Served<FileLog>, counted: boolean, release: () => void): StoreHold {
    const { dir } = this;
    const { generation, place } = log.writer;
    return {
      uid,
      sequence: place.sequence,
      snapshot: snapshot.generation,
      log: { generation, offset: place.offset },
      files: [
        { name: snapshotName(dir, snapshot.generation), bytes: snapshot.bytes },
        ...activity.segments.map(({ file, bytes }) => ({ name: segmentPath(dir, file), bytes })),
        ...log.closed.map((closed) => ({ name: logName(dir, closed.generation), bytes: closed.bytes })),
        { name: logName(dir, generation), bytes: place.offset },
      ],
      source: this.files,
      activity: activity.head,
      // Counting takes time in proportion to the tables.
      tables: counted ? state.countRows() : {},
      release,
    };
  }

  /** Keeps all files until the returned function is called. */
  #keepFiles(owner: JournalOwner<FileLog>): () => void {
    this.#holders++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holders--;
      this.#wake();
      // Files left over are removed by the next checkpoint or start.
      if (!this.#stopped) this.#removeSuperseded(owner).catch(() => {});
    };
  }

  /** Has the waiters for free files check again. */
  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async released(): Promise<void> {
    while (this.#holders > 0 && !this.#stopped) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  filesAfter(): Files {
    return this.files;
  }

  async epochs(owner: JournalOwner<FileLog>): Promise<number[]> {
    const { files, dir } = this;
    const epochOf = async (kind: 'snapshot' | 'log', name: string): Promise<number> =>
      decodeFileHeader(kind, name, await files.readAt(name, 0, headerLength)).epoch;
    // A checkpoint that ends meanwhile would remove them.
    const release = this.#keepFiles(owner);
    try {
      const { generation } = (await owner.serving()).snapshot;
      const { logs } = await listStoreFiles(files, dir);
      const behind = logs.filter((number) => number > generation).map((number) => logName(dir, number));
      const epochs = behind.map((name) => epochOf('log', name));
      return await Promise.all([epochOf('snapshot', snapshotName(dir, generation)), ...epochs]);
    } finally {
      release();
    }
  }

  /** After that it leaves the files alone: another process may own them. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    await this.#removing.idle();
  }

  async close(): Promise<void> {}
}

export type EmbeddedOptions<T extends object> = StoreOptions<T> & StoreDirectory;

/** Reads the store in a directory, which `createEmbedded` made. Throws `corrupt` for anything that does not verify. */
export function readEmbedded<T extends object>(options: EmbeddedOptions<T>): Promise<ReadStore<T>> {
  const journal = new FileJournal(options);
  return readStore(storeWorld(options, journal), journal);
}

interface CreateOptions extends LogContext {
  /** 16 bytes that the store's files are bound to. Default: random. */
  readonly uid?: Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Makes the files of a new, empty store: the first log, then the snapshot, whose presence says that the store exists.
 * Both are durable when this resolves. Throws `refused` if there is a store already.
 */
export async function createEmbedded(options: CreateOptions): Promise<void> {
  const { files, dir, at } = options;
  await files.makeDir(dir);
  await refuseExisting(files, dir);
  const uid = options.uid ?? options.random(uidLength);
  const start = { uid, sequence: 0, chain: new Uint8Array(tagLength), runs: [] };
  const log = await createLog(options, { ...start, generation: 1 });
  await log.close();
  const content = { schema: 0, savedAt: at, runs: [], activity: { segments: [], head: emptyHead } };
  await writeSnapshot(options, { ...start, generation: 0 }, content, [], new Uint8Array(0));
}

/** A first log without a record may be left from a crash while the store was being made. */
async function refuseExisting(files: Files, dir: string): Promise<void> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const empty = snapshots.length === 0 && logs.every((number) => number === 1);
  if (empty && (logs.length === 0 || (await files.size(logName(dir, 1))) <= logHeaderLength)) return;
  throw new KmsError('refused', `there is a store in ${dir} already`);
}
