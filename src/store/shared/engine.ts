// SharedEngine is what several equal nodes share: for each store a log of sealed rows that is appended to in turns, and
// files that are made whole. It sees the store's id, places, key epochs, tags and sealed bytes; no driver is named
// here. Whoever implements it for a database sees to it that what it says is committed is durable.
import { KmsError } from '../../errors.ts';
import type { WholeFiles } from '../files.ts';

/** A group of transactions, sealed. */
export interface LogRow {
  /** Its place in the log, from 1 on, without gaps. */
  readonly seq: number;
  /** Of the key that sealed it. */
  readonly epoch: number;
  /** The last 16 bytes of `sealed`: what the next row is sealed behind. */
  readonly tag: Uint8Array;
  readonly sealed: Uint8Array;
}

/** Who is further behind catches up without a turn, so that nobody waits for it. */
export const rowsInTurn = 64;

/** The beginning of a turn: nobody else appends to the store until it ends. */
export interface TurnStart {
  /** Of the row at the place that was asked from; undefined where there is none. */
  readonly tag: Uint8Array | undefined;
  /** The first `rowsInTurn` rows behind it at most, in order, and whether there are more. */
  readonly behind: readonly LogRow[];
  readonly hasMore: boolean;
  /** The rule by which rows are appended to this store: who knows another one must not. */
  readonly protocol: number;
  /** The engine's clock when the turn was there, epoch milliseconds; undefined where there are no rows. */
  readonly now: number | undefined;
  /** As it was when the rows were read; meaningless where there are none. */
  readonly control: Control;
  /**
   * Names the line of commits that the engine is on: it is another one behind each failover, and where the engine was
   * put back. Empty where that is not known.
   */
  readonly history: string;
}

/** What all stores of an engine go by. */
export interface Control {
  /** Of the seal in force; 0 where there is none. */
  readonly sealVersion: number;
  /** Whether somebody sealed the appliance on purpose, and nobody unsealed it since. */
  readonly isSealed: boolean;
  /** The last row of the store that is named `system`; 0 where there is none. */
  readonly systemSeq: number;
}

/** The store that tells of the others. */
export const systemName = 'system';

export interface TurnEnd {
  /** Resolves at the commit; fails with an `EngineError`, which says whether it may have happened all the same. */
  readonly committed: Promise<void>;
  /** The next turn, where it was asked for. It fails where `committed` does. */
  readonly next: Promise<TurnStart> | undefined;
}

/**
 * A node's way to the log of one store: one turn at a time. After a failure the next `begin` makes a new connection.
 */
export interface Lane {
  /** Waits for the turn of the store. The one of a connection that was lost has ended when this resolves. */
  begin(from: number): Promise<TurnStart>;
  /**
   * Appends the row, if there is one, and commits. With `again`, a place as `begin` has it, the next turn is asked for
   * in the same message.
   */
  end(row: LogRow | undefined, again: number | undefined): TurnEnd;
  /** Ends the turn without a trace, if there is one. Never fails. */
  abandon(): Promise<void>;
  close(): Promise<void>;
}

/** A row by which a branch of the log is known. */
export type KnownRow = Pick<LogRow, 'seq' | 'tag'>;

/** The row up to which a snapshot stands for the log, and all files that this takes: it and the segments it names. */
export interface CoveredLog extends KnownRow {
  readonly files: readonly string[];
}

/** A store as the engine knows it. */
export interface ListedStore {
  /** `system`, or the random name that the seal has for a tenant's. */
  readonly name: string;
  readonly store: string;
  /** Whether `finish` was called for it; what is not may be the rest of something that was cut off. */
  readonly isWhole: boolean;
  /** Milliseconds since it was made. */
  readonly age: number;
}

/** The seal of the appliance as the engine keeps it. */
export interface SharedSeal {
  /** Counts its changes, from 1 on. */
  readonly version: number;
  readonly bytes: Uint8Array;
  readonly isSealed: boolean;
}

/** What a node tells the others of itself. */
export interface NodeEntry {
  /** Drawn once for the node's directory. */
  readonly id: string;
  /** The version of its program. */
  readonly build: string;
  /** The newest schemas that it knows. */
  readonly schemas: { readonly system: number; readonly tenant: number };
  readonly appendRule: number;
  /** Where it listens. */
  readonly places: readonly string[];
}

export interface ListedNode extends NodeEntry {
  /** Milliseconds since it began, and since it was last heard of, by the engine's clock. */
  readonly upFor: number;
  readonly age: number;
}

/** What an engine says of itself and of the way to it: whether what it acknowledges lasts. */
export interface EngineFacts {
  /** Such as `15.18`, and as a number that can be compared: 150018. */
  readonly version: string;
  readonly versionNumber: number;
  /** Whether a commit is on its disk when it is acknowledged, and survives a power cut in the middle of a page. */
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** The standbys that a commit waits for, as the server's settings name them; empty = none. */
  readonly synchronousStandbys: string;
  /** Standbys that are connected; undefined where this user may not see them. */
  readonly standbys: readonly { readonly name: string; readonly isSynchronous: boolean }[] | undefined;
  /** The protocol, such as `TLSv1.3`, of the connection as it arrives there; undefined = in clear. */
  readonly tls: string | undefined;
  /** Whether it arrives from the same machine. */
  readonly isLocal: boolean;
  /** Whether the user may do anything on the server. */
  readonly isSuperuser: boolean;
  /** Its clock, epoch milliseconds. */
  readonly now: number;
}

/**
 * Milliseconds by which a clock that said `now` between two times of ours is off at the least: 0 where it is between
 * them.
 */
export function clockDistance(now: number, asked: number, answered: number): number {
  return Math.max(0, asked - now, now - answered);
}

/** Milliseconds from which on a distance is said, and from which on it puts a node out of service. */
export const clockLimits = { said: 1_000, most: 30_000 } as const;

/** Milliseconds after which a node that is no longer heard of is not listed either. */
export const nodeForgotten = 86_400_000;

export interface SharedEngine {
  readonly files: WholeFiles;
  facts(): Promise<EngineFacts>;
  /**
   * Says that the node is there, from `begins` on anew. Answers the engine's clock, epoch milliseconds, and all nodes,
   * those that are gone too. It need not last.
   */
  noteNode(node: NodeEntry, begins: boolean): Promise<{ readonly now: number; readonly nodes: readonly ListedNode[] }>;
  nodes(): Promise<readonly ListedNode[]>;
  /** The node has ended. */
  forgetNode(id: string): Promise<void>;
  /**
   * Makes a store with its first row, in one step; its name is the store's id where none is given. Throws `refused`
   * where there is one of that id or name.
   */
  create(store: string, protocol: number, first: LogRow, name?: string): Promise<void>;
  stores(): Promise<readonly ListedStore[]>;
  /** The store is more than an attempt from now on. */
  finish(store: string): Promise<void>;
  /** Lets go of a store with all its rows and files, if there is one. Cut off, it is one that is not whole. */
  erase(store: string): Promise<void>;
  readSeal(): Promise<SharedSeal | undefined>;
  /** Puts the seal into the place of the one of version `before`, 0 = none; answers false where that is another now. */
  replaceSeal(before: number, bytes: Uint8Array): Promise<boolean>;
  /** Seals it on purpose, for all nodes, or ends that. */
  markSealed(isSealed: boolean): Promise<void>;
  /** On a connection of its own, or on one of a few that lanes share, and wait for. */
  lane(store: string, isOwn?: boolean): Lane;
  /** Committed rows from `from` on, in order, without a turn: `limit` of them at most. */
  rows(store: string, from: number, limit: number): Promise<readonly LogRow[]>;
  /**
   * Runs `job` while no other node runs one for the store; answers false, without running it, where one does. Who loses
   * the connection meanwhile runs on beside the next, so that a job has to be right without it too.
   */
  alone(store: string, job: () => Promise<void>): Promise<boolean>;
  /**
   * Replaces or makes a file, in one step, if the row is there; fails with `retry` where it is not: what was made of a
   * branch that a failover cut off must not come into another.
   */
  replaceBehind(
    store: string,
    row: KnownRow,
    name: string,
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void>;
  /**
   * In one step, if the files and the row are there: lets go of the rows before it that are older than `keep`
   * milliseconds, and of the files named unless somebody holds the store's. Answers whether they were there.
   */
  trim(store: string, covered: CoveredLog, keep: number, remove: readonly string[]): Promise<boolean>;
  /**
   * Has `holder` hold the store's files for so many milliseconds from now on; where it does not begin, only as long as
   * it did until now. Answers whether it does.
   */
  hold(store: string, holder: string, milliseconds: number, begins: boolean): Promise<boolean>;
  letGo(store: string, holder: string): Promise<void>;
  /** Whether anybody holds them. */
  isHeld(store: string): Promise<boolean>;
}

/**
 * What went wrong: `in-doubt` alone may have been done; after `retry` the same may work at once.
 */
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
  /** Why, where more is known than the fault. */
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
