// SharedEngine is the storage that several equal nodes share: for each store a log of sealed rows, appended to in
// turns, and files that are replaced as a whole. It sees store ids, positions, key epochs, tags and sealed bytes; it
// names no driver. An implementation must ensure that everything it reports as committed is durable.
import { KmsError } from '../../errors.ts';
import type { WholeFiles } from '../files.ts';

/** A sealed group of transactions. */
export interface LogRow {
  /** Its position in the log, from 1 on, without gaps. */
  readonly seq: number;
  /** Epoch of the key that sealed it. */
  readonly epoch: number;
  /** The last 16 bytes of `sealed`, which the seal of the next row binds. */
  readonly tag: Uint8Array;
  readonly sealed: Uint8Array;
}

/**
 * Rows that a turn returns at most. A node further behind catches up without a turn, so that no other node waits for
 * it.
 */
export const rowsInTurn = 64;

/** The beginning of a turn: no other node appends to the store until it ends. */
export interface TurnStart {
  /** Tag of the row at the requested position; undefined if there is none. */
  readonly tag: Uint8Array | undefined;
  /** The rows after it in order, at most `rowsInTurn`, and whether there are more. */
  readonly behind: readonly LogRow[];
  readonly hasMore: boolean;
  /** Version of the rule for appending rows to this store; a program that knows another version must not append. */
  readonly protocol: number;
  /** The engine's clock when the turn began, epoch milliseconds; undefined if no row was returned. */
  readonly now: number | undefined;
  /** The control values when the rows were read; meaningless if no row was returned. */
  readonly control: Control;
  /**
   * Identifies the engine's history of commits, which changes with each failover and with a restore of the engine.
   * Empty if unknown.
   */
  readonly history: string;
}

/** Values that concern all stores of an engine. */
export interface Control {
  /** Version of the seal in force; 0 if there is none. */
  readonly sealVersion: number;
  /** Whether the appliance was sealed on purpose and not unsealed since. */
  readonly isSealed: boolean;
  /** The last row of the store named `system`; 0 if there is none. */
  readonly systemSeq: number;
}

/** Name of the store that lists the others. */
export const systemName = 'system';

export interface TurnEnd {
  /**
   * Resolves at the commit; fails with an `EngineError`, which says whether the commit may have happened all the same.
   */
  readonly committed: Promise<void>;
  /** The next turn, if it was requested. It fails if `committed` does. */
  readonly next: Promise<TurnStart> | undefined;
}

/**
 * A node's access to the log of one store: one turn at a time. After a failure the next `begin` opens a new connection.
 */
export interface LogConnection {
  /** Waits for the store's turn. When this resolves, the turn of a lost connection has ended. */
  begin(from: number): Promise<TurnStart>;
  /**
   * Appends the row, if there is one, and commits. With `again`, a position as for `begin`, the next turn is requested
   * in the same message.
   */
  end(row: LogRow | undefined, again: number | undefined): TurnEnd;
  /** Ends the turn, if there is one, and rolls it back. Never fails. */
  abandon(): Promise<void>;
  close(): Promise<void>;
}

/** A row that identifies a branch of the log. */
export type KnownRow = Pick<LogRow, 'seq' | 'tag'>;

/**
 * The row up to which a snapshot covers the log, and all files needed for that: the snapshot and the segments it names.
 */
export interface CoveredLog extends KnownRow {
  readonly files: readonly string[];
}

/** A store in the engine's list. */
export interface ListedStore {
  /** `system`, or the random name that the seal has for a tenant's store. */
  readonly name: string;
  readonly store: string;
  /** Whether `finish` was called for it; a store that is not whole may be left from an interrupted attempt. */
  readonly isWhole: boolean;
  /** Milliseconds since it was made. */
  readonly age: number;
}

/** The seal of the appliance as the engine keeps it. */
export interface SharedSeal {
  /** Number of changes so far, from 1 on. */
  readonly version: number;
  readonly bytes: Uint8Array;
  readonly isSealed: boolean;
}

/** A node's entry in the list of nodes, visible to all. */
export interface NodeEntry {
  /** Random id, drawn once for the node's directory. */
  readonly id: string;
  /** The version of its program. */
  readonly build: string;
  /** The newest schemas that it knows. */
  readonly schemas: { readonly system: number; readonly tenant: number };
  readonly appendRule: number;
  /** Addresses on which it listens. */
  readonly places: readonly string[];
}

export interface ListedNode extends NodeEntry {
  /** Milliseconds since it began, and since its last sign of life, by the engine's clock. */
  readonly upFor: number;
  readonly age: number;
}

/** Facts about an engine and the connection to it, which tell whether the commits that it acknowledges last. */
export interface EngineFacts {
  /** Version such as `15.18`, and a comparable number: 150018. */
  readonly version: string;
  readonly versionNumber: number;
  /** Whether a commit is on its disk when acknowledged, and survives a power cut in the middle of a page write. */
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** The standbys that a commit waits for, as the server's settings name them; empty = none. */
  readonly synchronousStandbys: string;
  /** Connected standbys; undefined if this user may not see them. */
  readonly standbys: readonly { readonly name: string; readonly isSynchronous: boolean }[] | undefined;
  /** The protocol of the connection as the engine sees it, such as `TLSv1.3`; undefined = in clear. */
  readonly tls: string | undefined;
  /** Whether the connection comes from the same machine. */
  readonly isLocal: boolean;
  /** Whether the user is a superuser on the server. */
  readonly isSuperuser: boolean;
  /** The engine's clock, epoch milliseconds. */
  readonly now: number;
}

/**
 * The least error, in milliseconds, of a clock that read `now` between two times of ours: 0 if it lies between them.
 */
export function clockDistance(now: number, asked: number, answered: number): number {
  return Math.max(0, asked - now, now - answered);
}

/** Milliseconds of clock error from which it is reported, and from which it puts a node out of service. */
export const clockLimits = { said: 1_000, most: 30_000 } as const;

/** Milliseconds without a sign of life after which a node is no longer listed. */
export const nodeForgotten = 86_400_000;

export interface SharedEngine {
  readonly files: WholeFiles;
  facts(): Promise<EngineFacts>;
  /**
   * Records that the node is alive; `begins` restarts its uptime. Returns the engine's clock, epoch milliseconds, and
   * all nodes, including dead ones. Need not be durable.
   */
  noteNode(node: NodeEntry, begins: boolean): Promise<{ readonly now: number; readonly nodes: readonly ListedNode[] }>;
  nodes(): Promise<readonly ListedNode[]>;
  /** Removes the entry of a node that has ended. */
  forgetNode(id: string): Promise<void>;
  /**
   * Makes a store with its first row, in one step. `name` defaults to the store's id. Throws `refused` if there is a
   * store of that id or name.
   */
  create(store: string, protocol: number, first: LogRow, name?: string): Promise<void>;
  stores(): Promise<readonly ListedStore[]>;
  /** Marks the store as whole: from now on it is no mere attempt. */
  finish(store: string): Promise<void>;
  /**
   * Removes a store with all its rows and files, if there is one. If interrupted, the store stays listed as not whole.
   */
  erase(store: string): Promise<void>;
  readSeal(): Promise<SharedSeal | undefined>;
  /** Replaces the seal of version `before`, 0 = none; returns false if the version is another now. */
  replaceSeal(before: number, bytes: Uint8Array): Promise<boolean>;
  /** Seals the appliance on purpose, for all nodes, or ends that. */
  markSealed(isSealed: boolean): Promise<void>;
  /** Uses a connection of its own, or one of a few that all logs share and wait for. */
  logConnection(store: string, isOwn?: boolean): LogConnection;
  /** At most `limit` committed rows from `from` on, in order, without a turn. */
  rows(store: string, from: number, limit: number): Promise<readonly LogRow[]>;
  /**
   * Runs `job` while no other node runs one for the store; returns false, without running it, if one does. A node that
   * loses the connection runs on beside the next, so a job must be correct even without exclusion.
   */
  alone(store: string, job: () => Promise<void>): Promise<boolean>;
  /**
   * Replaces or makes a file, in one step, if the row exists; otherwise fails with `retry`: files of a branch that a
   * failover cut off must not get into another.
   */
  replaceBehind(
    store: string,
    row: KnownRow,
    name: string,
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void>;
  /**
   * In one step, if the files and the row exist: removes the rows before it that are older than `keep` milliseconds,
   * and the files in `remove` unless the store's files are held. Returns whether they exist.
   */
  trim(store: string, covered: CoveredLog, keep: number, remove: readonly string[]): Promise<boolean>;
  /**
   * Holds the store's files for `holder`, for the given milliseconds from now on; unless it `begins`, only if the hold
   * has not run out. Returns whether it holds.
   */
  hold(store: string, holder: string, milliseconds: number, begins: boolean): Promise<boolean>;
  letGo(store: string, holder: string): Promise<void>;
  /** Whether there is any hold on the store's files. */
  isHeld(store: string): Promise<boolean>;
}

/** The kind of failure: only with `in-doubt` may the work have been done; after `retry` the same may work at once. */
export type EngineFault = 'unreachable' | 'in-doubt' | 'read-only' | 'full' | 'retry';

const said: Readonly<Record<EngineFault, string>> = {
  unreachable: 'the database cannot be reached',
  'in-doubt': 'the connection to the database was lost before it answered',
  'read-only': 'the database takes no writes',
  full: 'the database has no room left',
  retry: 'the database took the transaction back',
};

export class EngineError extends KmsError {
  readonly fault: EngineFault;
  /** The cause, if more is known than the kind. */
  readonly reason: string | undefined;

  constructor(
    fault: EngineFault,
    cause?: unknown,
    { reason, hint }: { readonly reason?: string; readonly hint?: string } = {},
  ) {
    const message = reason === undefined ? said[fault] : `${said[fault]}: ${reason}`;
    super('unavailable', message, { ...(cause !== undefined && { cause }), ...(hint !== undefined && { hint }) });
    this.fault = fault;
    this.reason = reason;
  }
}
