// Store is a database as the rest of the appliance sees it: transactions over typed tables, an activity log, and the
// files behind them, to be copied and maintained. It names no SQL and no journal.
import type { Mark } from '../model/store-mark.ts';
import type { WholeFiles } from './files.ts';
import type { Page, PageRequest, Row, Slices } from './sql.ts';
import type { AccountTable } from './tables/accounts.ts';
import type { ApiKeyTable } from './tables/api-keys.ts';
import type { ApprovalRequestTable } from './tables/approval-requests.ts';
import type { ApprovalRuleTable } from './tables/approval-rules.ts';
import type { AssetTable } from './tables/assets.ts';
import type { BrokenGlassTable } from './tables/broken-glass.ts';
import type { ClientAuthorityTable } from './tables/client-authorities.ts';
import type { KeyUseTable } from './tables/key-uses.ts';
import type { KmipObjectTable } from './tables/kmip-objects.ts';
import type { ManagedKeyUseTable } from './tables/managed-key-uses.ts';
import type { KeyVersionTable } from './tables/managed-key-versions.ts';
import type { ManagedKeyTable } from './tables/managed-keys.ts';
import type { OidcTable } from './tables/oidc.ts';
import type { ProofTable } from './tables/proofs.ts';
import type { RingKeyTable } from './tables/ring-keys.ts';
import type { RingTable } from './tables/rings.ts';
import type { SecondFactorTable } from './tables/second-factors.ts';
import type { SessionTable } from './tables/sessions.ts';
import type { TangTable } from './tables/tang.ts';
import type { UserTokenTable } from './tables/user-tokens.ts';
import type { UserTable } from './tables/users.ts';
import type { WayInTable } from './tables/ways-in.ts';
import type { WorkloadSessionTable } from './tables/workload-sessions.ts';
import type { WrappingKeyTable } from './tables/wrapping-keys.ts';

/** An entry of the activity log, before the log assigns its sequence number. */
export interface ActivityInput {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The actor: an API key's id, a user's id, or `local`. */
  readonly keyid: string;
  readonly action: string;
  /** The ring's name in lower case; empty if no ring is concerned. */
  readonly ringname: string;
  /** The verdict of authorization. */
  readonly validAction: boolean;
  /** The resulting HTTP status. */
  readonly status: number;
  readonly props: Readonly<Record<string, unknown>>;
  /** The origin of the request, as `canonicalBlock` writes it; absent if it came from the machine itself. */
  readonly address?: string | undefined;
  /** The sender of the record, if it is not the appliance's own: the id of an API key or user, or `local`. */
  readonly reporter?: string;
}

export interface ActivityRecord extends ActivityInput {
  /** Position in the tenant's chain, from 1 on, without gaps. */
  readonly seq: number;
}

/** A record with its chain hash. */
export interface ChainedActivity {
  readonly record: ActivityRecord;
  /** The canonical text that the chain hashes. */
  readonly line: string;
  /** Base64url. */
  readonly hash: string;
}

/** A position in the chain as it is stored and shown: `hash` (base64url) is that of record `seq`. */
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
  /** Records whose address is in this block, given as `canonicalBlock` writes it. */
  readonly address?: string;
  /** Records about the object with this id or, in any case of its letters, this name. */
  readonly object?: string;
  /** With `object`: only objects of this type. */
  readonly objectType?: string;
  /** Records that granted, or revoked, one of these flags; an empty list means any flag. */
  readonly granted?: readonly string[];
  readonly revoked?: readonly string[];
  /** Leaves out records that match all of this. */
  readonly exclude?: { readonly keyid?: string; readonly action?: string };
  /** Leaves out records of these actions. */
  readonly withoutActions?: ReadonlySet<string>;
  /** Leaves out granted records of these actions. */
  readonly withoutGranted?: ReadonlySet<string>;
  /** Only records after this sequence number. */
  readonly afterSeq?: number;
}

/** The tables of a tenant's database. */
export interface Tables {
  readonly rings: RingTable;
  readonly ringKeys: RingKeyTable;
  readonly keyUses: KeyUseTable;
  readonly assets: AssetTable;
  readonly accounts: AccountTable;
  readonly apiKeys: ApiKeyTable;
  readonly proofs: ProofTable;
  readonly workloadSessions: WorkloadSessionTable;
  readonly clientAuthorities: ClientAuthorityTable;
  readonly users: UserTable;
  readonly sessions: SessionTable;
  readonly userTokens: UserTokenTable;
  readonly secondFactors: SecondFactorTable;
  readonly oidc: OidcTable;
  readonly managedKeys: ManagedKeyTable;
  readonly keyVersions: KeyVersionTable;
  readonly managedKeyUses: ManagedKeyUseTable;
  readonly kmipObjects: KmipObjectTable;
  readonly wrappingKeys: WrappingKeyTable;
  readonly tang: TangTable;
  readonly approvalRules: ApprovalRuleTable;
  readonly approvalRequests: ApprovalRequestTable;
  readonly brokenGlass: BrokenGlassTable;
  readonly waysIn: WayInTable;
}

/** The tables `T`, and what only a transaction can do. */
export type Transaction<T extends object = Tables> = T & {
  /** Runs `fn`; if it throws, rolls back what it wrote and rethrows. */
  savepoint<R>(fn: () => R): R;
  /** The same for work in slices. */
  savepointInSlices<R>(fn: () => Slices<R>): Slices<R>;
  /** Adds a record to the activity log in the same durable unit as the transaction's other writes. */
  record(activity: ActivityInput): void;
};

/** An event that a store reports to its operator, apart from the answers to requests. */
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

/** Reading the activity log. Every result is durable. */
export interface StoreActivity {
  /** Newest first. `next` of the page is a sequence number. */
  search(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>>;
  find(id: string): Promise<ActivityRecord | undefined>;
  /**
   * Records in chain order with their hashes, for export and verification: from `fromSeq` on, or from the first one
   * kept. Throws `corrupt` if the chain breaks.
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
  /** Sequence number of the last activity record. */
  readonly activityCount: number;
  /** The records among them that retention dropped; undefined if there are none. */
  readonly activityDropped: DroppedActivity | undefined;
  /** Number of closed files of the activity log. */
  readonly activitySegments: number;
  /** The closed files known to be missing or changed. */
  readonly activityFaults: readonly SegmentProblem[];
  /** Number of closed files verified in the current or the last pass. */
  readonly activityVerified: number;
  /** Epoch milliseconds of the end of the last complete verification pass; undefined before the first. */
  readonly activityVerifiedAt: number | undefined;
}

/** The beginning of an activity log that retention dropped. */
export interface DroppedActivity {
  /** Sequence number of the last dropped record. */
  readonly seq: number;
  /** The chain hash of that record, base64url; the first kept record continues from it. */
  readonly hash: string;
  /** Latest `createdAt` of the dropped records. */
  readonly until: number;
}

/** Summary of a closed file of the activity log, as a search and a start need it; JSON, some kilobytes at most. */
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
  /** Bloom filters of the terms, base64url; null = too many terms. */
  readonly keys: string | null;
  readonly actions: string | null;
  readonly rings: string | null;
  readonly props: string | null;
  /** The same for addresses and the networks around them; absent if the file's format has no addresses. */
  readonly addresses?: string | null;
}

/** A fault of a closed file of the activity log. */
export interface SegmentProblem {
  /** The file's path within the data directory. */
  readonly path: string;
  /** The predicate of a sentence about the file: `is missing`. */
  readonly problem: string;
  /** Epoch milliseconds since when it is known. */
  readonly since: number;
}

/** A closed file of the activity log to be verified. */
export interface SegmentCheck {
  readonly dir: string;
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  readonly summary: SegmentSummary;
}

/** Reads a whole segment and returns what is wrong with it; undefined if nothing is. */
export type VerifySegment = (check: SegmentCheck) => Promise<string | undefined>;

/** Checks of the closed files of the activity log. Faults appear in the store's status. */
export interface StoreSegments {
  /** Checks that every file exists, with its size and its header. */
  look(): Promise<void>;
  /** Throws `corrupt` if a file with records from `fromSeq` on is known to be faulty, or turns out to be. */
  need(fromSeq: number): Promise<void>;
  /** Checks faulty files again, and verifies those that look well. */
  again(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void>;
  /**
   * Verifies the contents of every file, one by one. `pause` is awaited with the size of each file read; if it resolves
   * to false, the pass ends early and does not count.
   */
  pass(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void>;
}

/** A file, or the first `bytes` bytes of one. */
export interface HeldFile {
  /** The name as in the store's files, with the store's directory in front. */
  readonly name: string;
  readonly bytes: number;
}

export interface StoreHold {
  /** The store's 16 bytes. */
  readonly uid: Uint8Array;
  /** Number of transactions up to the commit. */
  readonly sequence: number;
  /** Generation of the snapshot from which a recovery starts. */
  readonly snapshot: number;
  /** The last log, and the end of the commit in it. */
  readonly log: { readonly generation: number; readonly offset: number };
  /** All files that a recovery up to the commit reads; the last log comes last. */
  readonly files: readonly HeldFile[];
  /** The source to read them from, by these names. */
  readonly source: Pick<WholeFiles, 'size' | 'readAt'>;
  /** The end of the activity log at the commit. */
  readonly activity: ChainHead;
  /** Rows of each table at the commit; empty if not asked for. */
  readonly tables: Readonly<Record<string, number>>;
  /** Releases the files; may be called twice. */
  release(): void;
}

/** A database of the appliance: one for each tenant, and one (with other tables) for the appliance itself. */
export interface Store<T extends object = Tables> {
  /**
   * Runs `fn` to its end, makes what it wrote durable together with neighbouring transactions, and only then resolves.
   * If `fn` throws, its writes are rolled back and the error is rethrown. Throws `unavailable` while the store cannot
   * write.
   */
  transaction<R>(fn: (tx: Transaction<T>) => R): Promise<R>;
  /**
   * The same for work too long for one turn of the event loop: other transactions of this store wait, all else is
   * served.
   */
  transactionInSlices<R>(fn: (tx: Transaction<T>) => Slices<R>): Promise<R>;
  /**
   * Runs `fn` on the state in memory, which may be ahead of the disk, in the middle of a transaction in slices, or
   * behind another node's writes: for a look before a transaction, never for an answer. Throws `unavailable` while
   * nothing is in service.
   */
  read<R>(fn: (tables: T) => R): R;
  readonly activity: StoreActivity;
  /** The mark of everything durable. */
  readonly mark: Mark;
  status(): StoreStatus;
  /** Writes a new snapshot and drops the log files that it covers. */
  checkpoint(): Promise<void>;
  /**
   * Keeps the files of the last commit as they are until released; if `counted`, with the number of rows in each table.
   */
  hold(counted: boolean): Promise<StoreHold>;
  /**
   * Brings every file under the newest key while the store serves, and returns the key epochs that files still need:
   * only that one, unless a newer one came meanwhile. Throws `unavailable` if the store is closed first.
   */
  reseal(): Promise<readonly number[]>;
  /**
   * The part of the activity log that would go with its oldest closed files, if all their records are older than
   * `before` (epoch milliseconds) and none comes after record `upTo`. Undefined if no further file may go.
   */
  droppable(before: number, upTo: number): DroppedActivity | undefined;
  /**
   * Drops the closed files with the records up to `seq`, by a checkpoint whose snapshot says where the kept log begins.
   * The files are removed once they are neither read nor copied.
   */
  dropActivity(seq: number): Promise<void>;
  readonly segments: StoreSegments;
  /** Waits for the work under way, makes it durable and releases the files. */
  close(): Promise<void>;
}

/** A store recovered into memory, unchanged on disk, so that it can be inspected before it is put in service. */
export interface ReadStore<T extends object> {
  readonly mark: Mark;
  /** The last log file. */
  readonly log: string;
  /** The rows that a constant, reading statement returns; `queryFor` gets the number of migrations done. */
  rows<R extends Row>(queryFor: (schema: number) => string): readonly R[];
  /** Puts the store in service; only now may a file change. If that fails, everything is released. */
  open(): Promise<Store<T>>;
  /** Releases the store, unless it was opened. */
  discard(): Promise<void>;
}
