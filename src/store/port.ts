// The store as `core` sees it: transactions over typed tables, and the activity log. No SQL, no driver, no file.
import type { StoreHold } from './hold.ts';
import type { Page, PageRequest } from './sql.ts';
import type { AccountTable } from './tables/accounts.ts';
import type { ApiKeyTable } from './tables/api-keys.ts';
import type { AssetTable } from './tables/assets.ts';
import type { RingKeyTable } from './tables/ring-keys.ts';
import type { RingTable } from './tables/rings.ts';
import type { SessionTable } from './tables/sessions.ts';
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

export interface ActivityFilter {
  /** Any of these; absent = any key. */
  readonly keyids?: readonly string[];
  readonly action?: string;
  readonly ringname?: string;
  readonly valid?: boolean;
  /** Epoch milliseconds, both inclusive. */
  readonly start?: number;
  readonly end?: number;
  /** Records whose `props` contain this object (deep; arrays and scalars compare whole). */
  readonly props?: Readonly<Record<string, unknown>>;
}

/** The tables of a tenant's database. */
export interface Tables {
  readonly rings: RingTable;
  readonly ringKeys: RingKeyTable;
  readonly assets: AssetTable;
  readonly accounts: AccountTable;
  readonly apiKeys: ApiKeyTable;
  readonly users: UserTable;
  readonly sessions: SessionTable;
  readonly userTokens: UserTokenTable;
}

/** The tables `T`, and what only a transaction can do. */
export type Transaction<T extends object = Tables> = T & {
  /** Runs `fn`; when it throws, takes back what it wrote and throws on. */
  savepoint<R>(fn: () => Promise<R>): Promise<R>;
  /** Adds a record to the activity log in the same durable unit as the transaction's other writes. */
  record(activity: ActivityInput): void;
};

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
  readonly activityCount: number;
  /** Closed files of the activity log. */
  readonly activitySegments: number;
}

/** A database of the appliance: one for each tenant, and one (with other tables) for the appliance itself. */
export interface Store<T extends object = Tables> {
  /**
   * Runs `fn` alone, then makes what it wrote durable together with its neighbours, and only then resolves. Inside, nothing
   * is awaited but the store. When `fn` throws, nothing of it remains and the error is thrown on.
   * Throws `unavailable` while the store cannot write.
   */
  transaction<R>(fn: (tx: Transaction<T>) => Promise<R>): Promise<R>;
  /**
   * Runs `fn` between transactions, on the state as it is, which may be ahead of the disk: for looking before a transaction, never for
   * answering. It waits its turn, so it never ends when called inside a transaction.
   */
  peek<R>(fn: (tables: T) => Promise<R>): Promise<R>;
  /** The newest first. `next` of the page is a sequence number. */
  searchActivity(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>>;
  findActivity(id: string): Promise<ActivityRecord | undefined>;
  /** Records in chain order with their hashes, for export and verification. Throws `corrupt` where the chain breaks. */
  readActivity(fromSeq: number): AsyncIterable<ChainedActivity>;
  /** Transactions that are durable. */
  readonly sequence: number;
  status(): StoreStatus;
  /** Writes a new snapshot and drops the log files that it covers. */
  checkpoint(): Promise<void>;
  /**
   * Keeps the files of the last commit as they are until released, `counted` with the rows of each table. Absent where the truth is not in
   * files of the store's own.
   */
  hold?(counted: boolean): Promise<StoreHold>;
  /**
   * Brings every file under the newest key, while the store serves, and answers the key epochs that files still need: that one alone,
   * unless a newer came meanwhile. Absent where there are no such files. Throws `unavailable` when the store is closed before the end.
   */
  reseal?(): Promise<readonly number[]>;
  /** Waits for what is under way, makes it durable and lets go of the files. */
  close(): Promise<void>;
}
