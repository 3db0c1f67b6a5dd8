// Options of an embedded store: its environment (files, keys, clock, randomness) and its limits.
import type { CheckpointJob, CheckpointResult } from './checkpoint.ts';
import type { Commit } from './commit-log.ts';
import type { Files } from './files.ts';
import type { LogContext } from './log-file.ts';
import type { StoreEvent } from './port.ts';
import type { Sql } from './sql.ts';
import type { StoreKeys } from './store-files.ts';
import type { Migration } from './tables/migrations.ts';

export interface EmbeddedOptions<T extends object> {
  readonly files: Files;
  /** The store's directory, by its name in `files`. */
  readonly dir: string;
  readonly keys: StoreKeys;
  /** The content of sql.js's sql-wasm.wasm. */
  readonly wasm: Uint8Array | ArrayBuffer;
  readonly migrations: readonly Migration[];
  tables(sql: Sql): T;
  /** The uid of the store that must be in the directory; absent = any that the keys open. */
  readonly uid?: Uint8Array;
  /** Runs a checkpoint and returns its result. Default: on this thread. */
  readonly runCheckpoint?: (job: CheckpointJob) => Promise<CheckpointResult>;
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

export interface StoreLimits {
  /** A checkpoint is due when the logs are larger than this and than the snapshot. */
  readonly checkpointBytes: number;
  /** Pauses in milliseconds between attempts to recover, and after a failed checkpoint. */
  readonly recoveryRetry: number;
  readonly checkpointRetry: number;
  /** Records in a segment of the activity log. */
  readonly segmentRecords: number;
  /** Cache for activity segments that were read, in bytes. */
  readonly activityCacheBytes: number;
}

export const defaultLimits: StoreLimits = {
  checkpointBytes: 8 * 1024 * 1024,
  recoveryRetry: 1000,
  checkpointRetry: 60_000,
  segmentRecords: 8192,
  activityCacheBytes: 32 * 1024 * 1024,
};

/** The options with all defaults filled in. */
export type EmbeddedWorld<T extends object> = Required<Omit<EmbeddedOptions<T>, 'uid' | 'limits'>> & {
  readonly uid: Uint8Array | undefined;
  readonly limits: StoreLimits;
  readonly context: LogContext;
};
