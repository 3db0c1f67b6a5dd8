// What every operation of the core is given: the transaction, who calls, whose tenant it is, and the world outside
// (clock, randomness) as values, so that an operation is a function of its arguments.
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Transaction } from '../store/port.ts';
import type { Flags } from './flags.ts';

export type IdPrefix = 'ring' | 'key' | 'asset' | 'user' | 'acct' | 'apik' | 'act' | 'tenant';

/** Who calls. `id` is what the activity log records as `keyid`. */
export interface Caller {
  readonly kind: 'apikey' | 'user' | 'local';
  /** The API key's id, the user's id, or `local` for the administrator at the machine. */
  readonly id: string;
  readonly flags: Flags;
  /** The account of an API key. */
  readonly accountId?: string;
  /** The user behind an access token, or the user that owns the API key. */
  readonly userId?: string;
  /** The session behind an access token, by the hash of the token. */
  readonly session?: string;
}

/** The most of each kind that a tenant may have; absent = unlimited. */
export interface Limits {
  readonly keyrings?: number;
  readonly keysPerRing?: number;
  readonly users?: number;
  readonly accounts?: number;
  readonly apikeys?: number;
  readonly assets?: number;
}

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly limits: Limits;
  readonly keys: TenantKeys;
}

/** The world outside an operation. */
export interface World {
  /** Epoch milliseconds. */
  now(): number;
  /** Bytes from the system's secure generator. */
  random(length: number): Uint8Array;
  /** A new id: the prefix, `_`, a lower-case ULID later than all before it. */
  newId(prefix: IdPrefix): string;
}

export interface Context {
  readonly tx: Transaction;
  readonly caller: Caller;
  readonly tenant: Tenant;
  readonly world: World;
}

/** What an operation is given that needs no credential. */
export type PublicContext = Omit<Context, 'caller'>;
