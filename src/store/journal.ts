// Journal is the log of a store, with the files of its snapshots and activity segments. A store is recovered from it,
// and appends each group of transactions to it. FileJournal has its files to itself and always has the turn; RowJournal
// shares the rows of a database with other nodes, and takes turns with them.
import type { Mark } from '../model/store-mark.ts';
import type { ActivityLog } from './activity/activity-log.ts';
import type { CheckpointJob, CheckpointResult } from './checkpoint.ts';
import type { WholeFiles } from './files.ts';
import type { StoreEvent, StoreHold } from './port.ts';
import type { LogEnd, Recovered, RecoveredState, RecoverOptions } from './recover.ts';
import type { Session, Written } from './session.ts';
import type { Sql } from './sql.ts';
import type { State } from './state.ts';
import type { StoreKeys } from './store-files.ts';
import type { Migration } from './tables/migrations.ts';

/** A group that became durable. */
export interface Commit {
  readonly transactions: number;
  /** Milliseconds from sealing the group to its durability, and the fsync's share of them. */
  readonly ms: number;
  readonly syncMs: number;
}

export interface StoreLimits {
  /** A checkpoint is due when the log is larger than this and than the snapshot. */
  readonly checkpointBytes: number;
  /** Pauses in milliseconds between attempts to recover, and after a failed checkpoint. */
  readonly recoveryRetry: number;
  readonly checkpointRetry: number;
  /** Records in a segment of the activity log. */
  readonly segmentRecords: number;
  /** Cache for activity segments that were read, in bytes. */
  readonly activityCacheBytes: number;
  /** Maximum of jobs in a turn, and milliseconds after which no further one is started in it. */
  readonly turnRequests: number;
  readonly turnMs: number;
}

export const defaultLimits: StoreLimits = {
  checkpointBytes: 8 * 1024 * 1024,
  recoveryRetry: 1000,
  checkpointRetry: 60_000,
  segmentRecords: 8192,
  activityCacheBytes: 32 * 1024 * 1024,
  turnRequests: 512,
  turnMs: 5,
};

/** The environment of a store, with any journal. */
export interface StoreOptions<T extends object> {
  readonly keys: StoreKeys;
  /** The content of sql.js's sql-wasm.wasm. */
  readonly wasm: Uint8Array | ArrayBuffer;
  readonly migrations: readonly Migration[];
  tables(sql: Sql): T;
  /** Runs a checkpoint and returns its result. Default: on this thread. */
  readonly runCheckpoint?: (job: CheckpointJob) => Promise<CheckpointResult | undefined>;
  /** Called once the store is closed. */
  readonly onClosed?: () => Promise<void>;
  /** Called before the first missing migration of an existing store; an error from it stops the start. */
  readonly beforeMigration?: () => Promise<void>;
  readonly onEvent?: (event: StoreEvent) => void;
  /** Called for each durable group of transactions. */
  readonly onCommit?: (commit: Commit) => void;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed?: () => number;
  readonly random?: (length: number) => Uint8Array;
  /** Schedules a callback. Default: a timer that does not keep the process alive. */
  readonly later?: (milliseconds: number, run: () => void) => void;
  readonly limits?: Partial<StoreLimits>;
}

/** The options with all defaults filled in. */
export type StoreWorld<T extends object> = Required<Omit<StoreOptions<T>, 'limits'>> & {
  readonly limits: StoreLimits;
};

/** The log behind a store in service. */
export interface Log {
  /** Bytes since the snapshot. */
  readonly bytes: number;
  /** Number of the last file or row, and of transactions up to its end. */
  readonly generation: number;
  readonly sequence: number;
  /** Everything durable that answers are based on. */
  readonly mark: Mark;
  /** Adds a transaction to the next group; resolves when it is durable. */
  add(written: Written): Promise<void>;
  /** Resolves when everything added so far is durable; undefined if it already is. */
  durable(): Promise<void> | undefined;
  /** Forgets what a snapshot up to `generation` covers. */
  forget(generation: number): void;
  /** Stops after a failure, for `cause`; resolves when the waiting callers have been rejected. */
  release(cause: unknown): Promise<void>;
  /** Makes everything durable, and closes it. */
  close(): Promise<void>;
}

/** The store in service. */
export interface Served<L extends Log = Log> {
  readonly uid: Uint8Array;
  readonly state: State;
  readonly session: Session<object>;
  readonly activity: ActivityLog;
  readonly log: L;
  snapshot: RecoveredState['snapshot'];
  /** Whether all migrations of this program were run. */
  isMigrated: boolean;
  /** Its log failed: nothing in it may be shown. */
  readonly dead: boolean;
}

/** The store, as its journal calls it. */
export interface JournalOwner<L extends Log> {
  /** The store in service, after any recovery under way. Throws `unavailable` if there is none. */
  serving(): Promise<Served<L>>;
  /** Runs `job` in a turn: no transaction runs meanwhile. */
  inTurn<R>(job: (live: Served<L>) => Promise<R>): Promise<R>;
  /** Makes a checkpoint of the present moment. */
  cover(how: CheckpointHow): Promise<CheckpointResult>;
  /** Discards the state, and recovers it from the journal. */
  leave(live: Served<L>, cause: unknown): void;
  /** Waits a moment. Throws once the store is closed. */
  pause(): Promise<void>;
}

export interface LogEvents {
  /** Called after each durable group. */
  onDurable(commit: Commit): void;
  /** Called once, at the failure itself. */
  onFailure(cause: unknown): void;
}

export interface CheckpointHow {
  /** Whether to count the rows of the tables. */
  readonly counted?: boolean;
  /** Whether nothing before it is kept that could be removed. */
  readonly isLast?: boolean;
}

export interface Journal<L extends Log = Log, E extends LogEnd = LogEnd> {
  /** The directory of the store's files in `files`. */
  readonly dir: string;
  readonly files: WholeFiles;
  /** Whether no other process ever appends, so that transactions run at once. */
  readonly hasTurn: boolean;
  /** Milliseconds after which an idle store takes a turn, to follow the others; undefined if there are none. */
  readonly poll: number | undefined;
  /** Why the last turn failed; undefined if it did not. */
  readonly trouble: string | undefined;
  /** The event texts for a failure and for the recovery from it. */
  readonly words: { readonly failed: string; readonly mended: string };
  /** The kind of event to report for a failure of its own kind. */
  kindOf(cause: unknown): StoreEvent['kind'] | undefined;

  /** Recovers the state. Changes nothing. Throws `corrupt` for anything that does not verify. */
  recover(options: RecoverOptions): Promise<Recovered<E>>;
  /** The same after the failure of `log`. Refuses another history, and less than was reported as durable. */
  recoverFrom(log: L, options: RecoverOptions): Promise<Recovered<E>>;
  /** Continues the log that was recovered; `before` is the one that failed. */
  open(recovered: Recovered<E>, events: LogEvents, before?: L): Promise<L>;

  /**
   * Takes the turn and replays what others appended behind the store's place. Resolves to false if the store in service
   * has changed. Throws if there is no turn.
   */
  begin(live: Served<L>, owner: JournalOwner<L>): Promise<boolean>;
  /** Appends what was run in the turn and ends it; `more` is waiting. */
  end(live: Served<L>, owner: JournalOwner<L>, more: boolean): Promise<void>;

  /** Runs `job` while no other process makes a checkpoint; returns false, without running it, if one does. */
  alone(job: () => Promise<void>): Promise<boolean>;
  /** Takes over snapshots of others. Returns why the state must be recovered all the same; undefined if it need not. */
  adoptNewer(owner: JournalOwner<L>): Promise<unknown>;
  /** The part of the log that a checkpoint made now covers. */
  covered(live: Served<L>): Promise<Pick<CheckpointJob, 'through' | 'chain' | 'known'>>;
  /** Calls `adopt` for the store in service, and removes what the checkpoint replaces. Returns false if it is lost. */
  supersede(
    made: CheckpointResult,
    owner: JournalOwner<L>,
    adopt: (live: Served<L>) => void,
    how: CheckpointHow,
  ): Promise<boolean>;
  /** Keeps the files as they are at one commit. */
  hold(owner: JournalOwner<L>, counted: boolean): Promise<StoreHold>;
  /** Resolves when no files are held. */
  released(owner: JournalOwner<L>): Promise<void>;
  /** The files in which a segment may be replaced after that checkpoint. */
  filesAfter(made: CheckpointResult): WholeFiles;
  /** Key epochs of the newest snapshot, and of the log after it. */
  epochs(owner: JournalOwner<L>): Promise<Iterable<number>>;
  /** Waits for its own work on the files, and stops it. */
  stop(): Promise<void>;
  close(): Promise<void>;
}
