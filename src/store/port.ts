// Store is a database as the rest of the appliance sees it: transactions over typed tables, an activity log, and the
// files behind them to be copied and looked after. It names no SQL and no driver; every driver implements it whole.
import type { Mark } from '../model/store-mark.ts';
import type { WholeFiles } from './files.ts';
import type { Page, PageRequest, Slices } from './sql.ts';
import type { AccountTable } from './tables/accounts.ts';
import type { ApiKeyTable } from './tables/api-keys.ts';
import type { AssetTable } from './tables/assets.ts';
import type { KeyUseTable } from './tables/key-uses.ts';
import type { OidcTable } from './tables/oidc.ts';
import type { RingKeyTable } from './tables/ring-keys.ts';
import type { RingTable } from './tables/rings.ts';
import type { SecondFactorTable } from './tables/second-factors.ts';
import type { SessionTable } from './tables/sessions.ts';
import type { TangTable } from './tables/tang.ts';
import type { TransitTable } from './tables/transit.ts';
import type { UserTokenTable } from './tables/user-tokens.ts';
import type { UserTable } from './tables/users.ts';

/** One entry of the activity log, before the log gives it its place. */
export interface ActivityInput {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Who acted: an API key's id, a user's id, or `local`. */
  readonly keyid: string;
  readonly action: string;
  /** The ring's name in lower case, or empty where no ring is concerned. */
  readonly ringname: string;
  /** The verdict of authorization. */
  readonly validAction: boolean;
  /** The HTTP status that came of it. */
  readonly status: number;
  readonly props: Readonly<Record<string, unknown>>;
  /** Where the request came from, as `canonicalBlock` has it; absent where it came from the machine itself. */
  readonly address?: string | undefined;
  /** Who sent the record, where it is not the appliance's own: the id of an API key or user, or `local`. */
  readonly reporter?: string;
}

export interface ActivityRecord extends ActivityInput {
  /** Place in the tenant's chain, from 1 on, without gaps. */
  readonly seq: number;
}

/** A record in its place in the chain. */
export interface ChainedActivity {
  readonly record: ActivityRecord;
  /** The canonical text that the chain hashes. */
  readonly line: string;
  /** Base64url. */
  readonly hash: string;
}

/** A place in the chain as it is stored and shown: the hash, base64url, is that of the record `seq`. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

export interface ActivityFilter {
  /** Any of these; absent = any key. */
  readonly keyids?: readonly string[];
  readonly action?: string;
  /** Any of these. */
  readonly actions?: readonly string[];
  readonly ringname?: string;
  readonly valid?: boolean;
  /** Epoch milliseconds, both inclusive. */
  readonly start?: number;
  readonly end?: number;
  /** Records whose `props` contain this object (deep; arrays and scalars compare whole). */
  readonly props?: Readonly<Record<string, unknown>>;
  /** Records whose address is in this block, which `canonicalBlock` wrote. */
  readonly address?: string;
  /** Records of something done to what has this id or, in any case of its letters, this name. */
  readonly object?: string;
  /** Records by which somebody gained, or lost, one of these flags; of an empty list, any flag. */
  readonly granted?: readonly string[];
  readonly revoked?: readonly string[];
  /** Records that have all of this are left out. */
  readonly exclude?: { readonly keyid?: string; readonly action?: string };
}

/** The tables of a tenant's database. */
export interface Tables {
  readonly rings: RingTable;
  readonly ringKeys: RingKeyTable;
  readonly keyUses: KeyUseTable;
  readonly assets: AssetTable;
  readonly accounts: AccountTable;
  readonly apiKeys: ApiKeyTable;
  readonly users: UserTable;
  readonly sessions: SessionTable;
  readonly userTokens: UserTokenTable;
  readonly secondFactors: SecondFactorTable;
  readonly oidc: OidcTable;
  readonly transit: TransitTable;
  readonly tang: TangTable;
}

/** The tables `T`, and what only a transaction can do. */
export type Transaction<T extends object = Tables> = T & {
  /** Runs `fn`; when it throws, takes back what it wrote and throws on. */
  savepoint<R>(fn: () => R): R;
  /** The same for work in slices. */
  savepointInSlices<R>(fn: () => Slices<R>): Slices<R>;
  /** Adds a record to the activity log in the same durable unit as the transaction's other writes. */
  record(activity: ActivityInput): void;
};

/** What a store has to say to its operator, apart from the answers to requests. */
export interface StoreEvent {
  readonly kind:
    | 'torn-tail'
    | 'write-failed'
    | 'log-lost'
    | 'log-moved'
    | 'recovered'
    | 'recovery-failed'
    | 'no-turn'
    | 'turn-again'
    | 'commits-lost'
    | 'checkpoint'
    | 'checkpoint-failed'
    | 'segment-fault'
    | 'segment-well';
  readonly message: string;
  readonly cause?: unknown;
}

/** Reading the activity log. What is answered is durable. */
export interface StoreActivity {
  /** The newest first. `next` of the page is a sequence number. */
  search(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>>;
  find(id: string): Promise<ActivityRecord | undefined>;
  /**
   * Records in chain order with their hashes, for export and verification: from `fromSeq` on, or from the first that is
   * kept. Throws `corrupt` where the chain breaks.
   */
  read(fromSeq: number): AsyncIterable<ChainedActivity>;
}

export interface StoreStatus {
  /** False while a failed write is being recovered from; `reason` then says why. */
  readonly writable: boolean;
  readonly reason?: string;
  /** Bytes on disk. */
  readonly logBytes: number;
  readonly snapshotBytes: number;
  readonly activityBytes: number;
  /** Transactions made durable since the directory was made. */
  readonly sequence: number;
  readonly lastCheckpointAt: number | undefined;
  /** Of the last record of the activity log: its number. */
  readonly activityCount: number;
  /** Those of them that retention let go of; undefined where there are none. */
  readonly activityDropped: DroppedActivity | undefined;
  /** Closed files of the activity log. */
  readonly activitySegments: number;
  /** Those of them that are known to be missing or changed. */
  readonly activityFaults: readonly SegmentProblem[];
  /** Those whose contents were verified in the pass under way, or in the last one. */
  readonly activityVerified: number;
  /** When the last whole pass over their contents ended, in epoch milliseconds; undefined before the first. */
  readonly activityVerifiedAt: number | undefined;
}

/** The beginning of an activity log that retention let go of. */
export interface DroppedActivity {
  /** All records up to this one. */
  readonly seq: number;
  /** The chain hash of that record, base64url: the first kept one goes on from it. */
  readonly hash: string;
  /** Latest `createdAt` of them. */
  readonly until: number;
}

/** What a search and a start need to know of a closed file of the activity log; JSON, some kilobytes at most. */
export interface SegmentSummary {
  readonly file: string;
  readonly bytes: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Chain hash before the first record and after the last, base64url. */
  readonly prevHash: string;
  readonly hash: string;
  /** Earliest and latest `createdAt`. */
  readonly from: number;
  readonly to: number;
  /** Least and greatest `idMark`. */
  readonly idFrom: string;
  readonly idTo: string;
  readonly validCount: number;
  readonly invalidCount: number;
  /** Bloom filters of the terms, base64url; null = too many to tell. */
  readonly keys: string | null;
  readonly actions: string | null;
  readonly rings: string | null;
  readonly props: string | null;
  /** Those of addresses and of the networks around them; absent where the file's format knows no addresses. */
  readonly addresses?: string | null;
}

/** What is wrong with a closed file of the activity log. */
export interface SegmentProblem {
  /** The file, within the data directory. */
  readonly path: string;
  /** What follows its name in a sentence: `is missing`. */
  readonly problem: string;
  /** Since when it is known, in epoch milliseconds. */
  readonly since: number;
}

/** A closed file of the activity log that is to be verified. */
export interface SegmentCheck {
  readonly dir: string;
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  readonly summary: SegmentSummary;
}

/** Answers what is wrong with the contents of a segment, read whole; undefined when nothing is. */
export type VerifySegment = (check: SegmentCheck) => Promise<string | undefined>;

/** Looking after the closed files of the activity log. What is found stands in the store's status. */
export interface StoreSegments {
  /** Looks whether every file is there, with its size and its header. */
  look(): Promise<void>;
  /** Throws `corrupt` where a file with records from `fromSeq` on is known to be at fault, or a look shows it. */
  need(fromSeq: number): Promise<void>;
  /** Looks again at what was at fault, and verifies what looks well. */
  again(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void>;
  /**
   * Verifies the contents of every file, one after the other. `pause` is awaited with the size of each that was read;
   * once it answers false, the pass ends early and does not count.
   */
  pass(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void>;
}

/** A file, or the first `bytes` bytes of one. */
export interface HeldFile {
  /** As the store's files have it: with the store's directory in front. */
  readonly name: string;
  readonly bytes: number;
}

export interface StoreHold {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** Transactions up to the commit. */
  readonly sequence: number;
  /** The snapshot from which a recovery starts. */
  readonly snapshot: number;
  /** The last log, and where in it the commit ends. */
  readonly log: { readonly generation: number; readonly offset: number };
  /** All that a recovery up to the commit reads. The last one is the last log. */
  readonly files: readonly HeldFile[];
  /** Where they are read, by these names. */
  readonly source: Pick<WholeFiles, 'size' | 'readAt'>;
  /** The end of the activity log at the commit. */
  readonly activity: ChainHead;
  /** Rows of each table at the commit; empty where they were not asked for. */
  readonly tables: Readonly<Record<string, number>>;
  /** Lets the files go; may be called twice. */
  release(): void;
}

/** A database of the appliance: one for each tenant, and one (with other tables) for the appliance itself. */
export interface Store<T extends object = Tables> {
  /**
   * Runs `fn` to its end, then makes what it wrote durable together with its neighbours, and only then resolves. When
   * `fn` throws, nothing of it remains and the error is thrown on. Throws `unavailable` while the store cannot write.
   */
  transaction<R>(fn: (tx: Transaction<T>) => R): Promise<R>;
  /** The same for what is too long for one go: other transactions of this store wait, everybody else is served. */
  transactionInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Promise<R>;
  /**
   * Runs `fn` on the state in memory, which may be ahead of the disk, in the midst of a transaction in slices, or behind
   * what another node wrote: for looking before a transaction, never for answering. Throws `unavailable` while nothing
   * is in service.
   */
  read<R>(fn: (tables: T) => R): R;
  readonly activity: StoreActivity;
  /** How far what is durable goes. */
  readonly mark: Mark;
  status(): StoreStatus;
  /** Writes a new snapshot and drops the log files that it covers. */
  checkpoint(): Promise<void>;
  /**
   * Keeps the files of the last commit as they are until released, `counted` with the rows of each table. Absent where
   * the truth is not in files of the store's own.
   */
  hold?(counted: boolean): Promise<StoreHold>;
  /**
   * Brings every file under the newest key, while the store serves, and answers the key epochs that files still need:
   * that one alone, unless a newer came meanwhile. Absent where there are no such files. Throws `unavailable` when the
   * store is closed before the end.
   */
  reseal?(): Promise<readonly number[]>;
  /**
   * What the activity log would lack without its oldest closed files, as far as all their records are from before
   * `before` (epoch milliseconds) and none is behind record `upTo`. Undefined where no further file may go. Absent,
   * like `dropActivity`, where there are no such files.
   */
  droppable?(before: number, upTo: number): DroppedActivity | undefined;
  /**
   * Lets go of the closed files with the records up to `seq`: by a checkpoint, whose snapshot says from where on the
   * log is kept. The files go once nobody reads or copies them.
   */
  dropActivity?(seq: number): Promise<void>;
  /** Absent where the truth is not in files of the store's own. */
  readonly segments?: StoreSegments;
  /** Waits for what is under way, makes it durable and lets go of the files. */
  close(): Promise<void>;
}
