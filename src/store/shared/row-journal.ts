// RowJournal is a journal that several equal nodes share: a log of sealed rows in an engine, with the files of
// snapshots and segments. There is no leader: a node with work takes a turn of the log, replays the rows of the others,
// appends its own, and answers at the commit. So every answer of every node belongs to one position in one history.
import { equalBytes } from '../../crypto/bytes.ts';
import { systemRandom } from '../../crypto/random.ts';
import { droppedFiles } from '../activity/dropped.ts';
import { segmentPath } from '../activity/segment.ts';
import type { CheckpointJob, CheckpointResult } from '../checkpoint.ts';
import type { WholeFiles } from '../files.ts';
import type { CheckpointHow, Journal, JournalOwner, LogEvents, Served, StoreLimits, StoreOptions } from '../journal.ts';
import { lostOf } from '../known-end.ts';
import type { ReadStore, StoreEvent, StoreHold } from '../port.ts';
import type { Recovered, RecoverOptions } from '../recover.ts';
import { readStore, storeWorld } from '../store.ts';
import { listStoreFiles, nonceLength, snapshotName } from '../store-files.ts';
import type { Migration } from '../tables/migrations.ts';
import { checkpointRows, filesBehind } from './checkpoint.ts';
import type { LogConnection, SharedEngine } from './engine.ts';
import { SharedHold } from './hold.ts';
import { newestSnapshot, type RowEnd, recoverRows, type SharedPlace, storeIdOf } from './recovery.ts';
import { appendRule, firstRow, logNameOf, type RowContext } from './row.ts';
import { CommitsLost, LostBranch, RowLog } from './row-log.ts';
import { RowTurns, type TurnLimits, type TurnWorld } from './row-turns.ts';

interface RowLimits extends TurnLimits {
  /** Milliseconds after which an idle node checks for rows of other nodes. */
  readonly poll: number;
  /** Milliseconds for which rows are always kept. */
  readonly keepRows: number;
  /** Milliseconds after which a hold on the files runs out if it is not renewed. */
  readonly holdMs: number;
}

const defaultRowLimits: RowLimits = {
  doubtMs: 10_000,
  doubtRetry: 100,
  poll: 1000,
  keepRows: 3_600_000,
  holdMs: 60_000,
};

interface RowWorld extends SharedPlace, Omit<TurnWorld, 'engine' | 'limits'> {
  /** The directory of its files in a copy, such as a backup. */
  readonly copyDir: string;
  /** Whether other stores may wait for its turn inside theirs: then it has a connection of its own. */
  readonly hasOwnConnection: boolean;
  /** Called before a recovery, since the rows may be under newer keys. */
  beforeRecovery(): Promise<void>;
  readonly migrations: readonly Migration[];
  readonly random: (length: number) => Uint8Array;
  readonly limits: RowLimits;
}

type Live = Served<RowLog>;
type Owner = JournalOwner<RowLog>;

const rowsAtOnce = 256;

class RowJournal implements Journal<RowLog, RowEnd> {
  readonly dir: string;
  readonly files: WholeFiles;
  readonly hasTurn = false;
  readonly poll: number;
  readonly words = { failed: 'a turn failed', mended: 'the store was recovered from the shared log and serves again' };
  readonly #world: RowWorld;
  readonly #connection: LogConnection;
  readonly #turns: RowTurns;

  constructor(world: RowWorld) {
    const { engine, uid, limits, hasOwnConnection } = world;
    this.#world = world;
    this.dir = storeIdOf(uid);
    this.files = engine.files;
    this.poll = limits.poll;
    this.#connection = engine.logConnection(this.dir, hasOwnConnection);
    this.#turns = new RowTurns(world, this.#connection);
  }

  get trouble(): string | undefined {
    return this.#turns.trouble;
  }

  /** Rows trimmed by a rekeying are no fault; commits cut off by a failover are reported with what was lost. */
  kindOf(cause: unknown): StoreEvent['kind'] | undefined {
    if (cause instanceof CommitsLost) return 'commits-lost';
    return cause instanceof LostBranch ? 'log-moved' : undefined;
  }

  recover(options: RecoverOptions): Promise<Recovered<RowEnd>> {
    const { engine, uid, keys } = this.#world;
    return recoverRows({ engine, uid, keys }, options);
  }

  async recoverFrom({ known }: RowLog, options: RecoverOptions): Promise<Recovered<RowEnd>> {
    await this.#world.beforeRecovery();
    const recovered = await this.recover(options);
    try {
      await this.#needAllKnown(known, recovered.log);
      return recovered;
    } catch (error) {
      recovered.state.close();
      throw error;
    }
  }

  /** Whatever failed: the log, or a snapshot of it, must include everything that this node's answers were based on. */
  async #needAllKnown(known: RowLog['known'], found: RowEnd): Promise<void> {
    const { engine, uid } = this.#world;
    if (known.seq === 0) return;
    const what = lostOf(found.place, known);
    if (what !== undefined) throw new CommitsLost(`${logNameOf(uid)}: ${what}`);
    const [row] = await engine.rows(this.dir, known.seq, 1);
    // A later row means that the log was trimmed in the meantime.
    if (row && (row.seq > known.seq || equalBytes(row.tag, known.tag))) return;
    throw new CommitsLost(new LostBranch(uid, known.seq).message);
  }

  async open({ log }: Recovered<RowEnd>, events: LogEvents, before?: RowLog): Promise<RowLog> {
    return new RowLog(this.#world, log, events, before?.known);
  }

  begin(live: Live, owner: Owner): Promise<boolean> {
    return this.#turns.begin(live, owner);
  }

  end(live: Live, owner: Owner, more: boolean): Promise<void> {
    return this.#turns.end(live, owner, more);
  }

  alone(job: () => Promise<void>): Promise<boolean> {
    return this.#world.engine.alone(this.dir, job);
  }

  /** If segments were cut off by a failover, with their snapshot, the state refers to them though its row is there. */
  async adoptNewer(owner: Owner): Promise<LostBranch | undefined> {
    const { log, snapshot } = await owner.serving();
    const isNewer = (generation: number): boolean => generation > snapshot.generation && generation <= log.generation;
    const found = await newestSnapshot(this.#world, isNewer);
    const live = await owner.serving();
    if (found && found.missing.length === 0) {
      const { header, manifest, size: bytes } = found;
      if (live.snapshot.generation < header.generation && live.log.generation >= header.generation) {
        live.activity.adopt(manifest.activity.segments, manifest.activity.dropped);
        live.log.forget(header.generation);
        live.snapshot = { generation: header.generation, bytes, savedAt: manifest.savedAt };
      }
    }
    const { segments } = live.activity;
    const names = segments.length > 0 ? new Set(await this.files.list(this.dir)) : new Set();
    const missing = segments.map(({ file }) => file).filter((file) => !names.has(file));
    const isKnown = missing.length === 0 || missing.join() === live.log.missing;
    return isKnown ? undefined : new LostBranch(live.uid, live.snapshot.generation);
  }

  async covered({ log }: Live): Promise<Pick<CheckpointJob, 'through'>> {
    return { through: log.generation };
  }

  /** Removes only rows and files that a snapshot read back whole replaces, and whose row is in the log. */
  async supersede(
    { generation, chain, segments }: CheckpointResult,
    owner: Owner,
    adopt: (live: Live) => void,
    { isLast }: CheckpointHow,
  ): Promise<boolean> {
    const { engine, limits } = this.#world;
    const { dir } = this;
    const files = [snapshotName(dir, generation), ...segments.map(({ file }) => segmentPath(dir, file))];
    const old = await this.#superseded(owner, generation);
    // A failover cut off files that are missing; nothing may be removed on their account.
    const covered = { files, seq: generation, tag: chain };
    if (!(await engine.trim(dir, covered, isLast ? 0 : limits.keepRows, old))) return false;
    adopt(await owner.serving());
    return true;
  }

  /**
   * The files that the snapshot replaces. Segments that it is the first to drop stay until the next one: other nodes
   * may still read them.
   */
  async #superseded(owner: Owner, generation: number): Promise<readonly string[]> {
    const { dir, files } = this;
    const names = await files.list(dir);
    const { snapshots } = await listStoreFiles(files, dir);
    const { dropped, isRead } = (await owner.serving()).activity;
    const segments = dropped && !isRead ? droppedFiles(names, dropped) : [];
    return [
      ...snapshots.filter((number) => number < generation).map((number) => snapshotName(dir, number)),
      ...segments.map((name) => segmentPath(dir, name)),
    ];
  }

  /** Holds a checkpoint made by this node, whose result describes the commit that it covers in full. */
  async hold(owner: Owner, counted: boolean): Promise<StoreHold> {
    const hold = await SharedHold.begin({ ...this.#world, ...this.#world.limits });
    try {
      return hold.filesOf(await owner.cover({ counted }), this.#world.copyDir);
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  async released(owner: Owner): Promise<void> {
    while (await this.#world.engine.isHeld(this.dir)) await owner.pause();
  }

  filesAfter({ generation: seq, chain: tag }: CheckpointResult): WholeFiles {
    const { engine, uid } = this.#world;
    return filesBehind(engine, uid, () => ({ seq, tag }));
  }

  /** Another node may have written the newest snapshot, and one with an old key may have appended under that. */
  async epochs(): Promise<Set<number>> {
    const snapshot = await newestSnapshot(this.#world, () => true);
    const found = new Set(snapshot && [snapshot.header.epoch]);
    for (let from = 1; ; ) {
      const rows = await this.#world.engine.rows(this.dir, from, rowsAtOnce);
      for (const { epoch, seq } of rows) {
        found.add(epoch);
        from = seq + 1;
      }
      if (rows.length < rowsAtOnce) return found;
    }
  }

  async stop(): Promise<void> {}

  close(): Promise<void> {
    return this.#connection.close();
  }
}

export interface SharedOptions<T extends object>
  extends Omit<StoreOptions<T>, 'limits'>,
    SharedPlace,
    Partial<Pick<RowWorld, 'hasOwnConnection' | 'onTurnStart' | 'beforeRecovery' | 'meter'>> {
  /** The directory of its files in a copy, such as a backup. */
  readonly dir: string;
  readonly limits?: Partial<StoreLimits & RowLimits>;
}

/**
 * Reads the store `options.uid`, which `createShared` made, without a turn. Throws `corrupt` for anything that does not
 * verify.
 */
export function readShared<T extends object>(options: SharedOptions<T>): Promise<ReadStore<T>> {
  const { dir: copyDir, engine, uid, keys, hasOwnConnection = false, meter } = options;
  const limits = { ...defaultRowLimits, ...options.limits };
  const world = storeWorld(options, checkpointRows(options));
  const journal = new RowJournal({
    ...world,
    ...{ engine, uid, keys, copyDir, limits, meter, hasOwnConnection },
    onTurnStart: (control) => options.onTurnStart?.(control),
    beforeRecovery: async () => options.beforeRecovery?.(),
  });
  return readStore(world, journal);
}

interface CreateShared extends RowContext {
  readonly engine: SharedEngine;
  /** The store's name in the engine's list. Default: its id. */
  readonly name?: string;
  random(length: number): Uint8Array;
}

/** Makes a new, empty store, durable when this resolves. Throws `refused` if it exists. */
export function createShared({ engine, name, random = systemRandom, ...context }: CreateShared): Promise<void> {
  return engine.create(storeIdOf(context.uid), appendRule, firstRow(context, random(nonceLength)), name);
}
