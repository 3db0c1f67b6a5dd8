// What every operation of the core is given: the transaction, who calls, whose tenant it is, and the world outside
// (clock, randomness) as values, so that an operation is a function of its arguments.

import type { DecodedHeader } from '../crypto/header.ts';
import type { KeyReference } from '../crypto/key-hash.ts';
import { KmsError } from '../errors.ts';
import type { Deed } from '../model/deed.ts';
import type { Flags } from '../model/flags.ts';
import type { Kem } from '../model/kems.ts';
import type { CustodyPolicy } from '../model/transit.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Transaction } from '../store/port.ts';
import type { KeyUseKind } from '../store/tables/key-uses.ts';
import type { Ring } from '../store/tables/rings.ts';

type IdPrefix = 'ring' | 'key' | 'asset' | 'user' | 'sess' | 'fact' | 'acct' | 'apik' | 'act' | 'tenant';

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
  /** Every stored version of every asset. */
  readonly assetVersions?: number;
}

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly limits: Limits;
  readonly keys: TenantKeys;
  /** Flags: users who have one of them need a second factor. */
  readonly secondFactorFor?: readonly string[];
  /** What new rings may have; absent = either custody. */
  readonly custody?: CustodyPolicy;
}

/** The world outside an operation. */
export interface World {
  /** Epoch milliseconds, for what outlasts the process. The clock may be set, forward or back. */
  now(): number;
  /** Milliseconds since some moment, by a clock that nobody sets: for waits and limits on how often. */
  elapsed(): number;
  /** Bytes from the system's secure generator. */
  random(length: number): Uint8Array;
  /** A new id: the prefix, `_`, a lower-case ULID later than all before it. */
  newId(prefix: IdPrefix): string;
  /** How keys are wrapped of rings whose makers don't say; absent = `x25519`. */
  readonly defaultKem?: Kem;
}

/** What a hash or a header says. */
export interface SealedInput {
  /** Undefined where there was no header, or one that has not the form. */
  readonly header: DecodedHeader | undefined;
  /** Ring and key behind the header's hash, or the hash; undefined where this tenant cannot read it. */
  readonly reference: KeyReference | undefined;
  /** The ring, a deleted one too, where it was looked up. */
  readonly ring?: Ring | undefined;
}

/** A key of a ring, and what it is handed out for. */
export interface KeyHandedOut {
  readonly id: string;
  readonly kind: KeyUseKind;
}

export interface Context {
  readonly tx: Transaction;
  readonly caller: Caller;
  /** What the request's hash or header says, where the decision who may make it had to read that. */
  readonly sealed?: SealedInput | undefined;
  readonly tenant: Tenant;
  readonly world: World;
  /**
   * Says what is done, for the request's record in the activity log. What fails afterwards has done nothing. Like the
   * methods below, to be called on the context, which keeps it.
   */
  note(this: Pick<Context, 'note'>, deed: Deed): void;
  /** Says that the answer hands out a key, which is counted as its use, also in the body of a refusal. */
  handsOut(this: Pick<Context, 'handsOut'>, key: KeyHandedOut): void;
  /**
   * Says that the request did several things, in order, each of which is recorded with its own status in place of the
   * request, and with what it was where that is said.
   */
  did(this: Pick<Context, 'did'>, statuses: readonly number[], deeds?: readonly Deed[]): void;
  /** Where the request came from; undefined where that is the machine itself. */
  readonly address?: string | undefined;
}

/** What the record of a login says of it beside whose it is. */
export interface HowLoggedIn {
  /** With the right password, and with no second factor where one is needed, or with a wrong one. */
  readonly secondFactor?: 'missing' | 'wrong';
  /** By an identity provider. */
  readonly operation?: 'oidc';
}

/** What an operation is given that needs no credential. */
export interface PublicContext extends Omit<Context, 'caller' | 'handsOut' | 'did'> {
  /**
   * Says under whose id the request is recorded, which nothing else tells: that of the user whose name or link it came
   * with. `undefined` for a name that nobody has: then it is counted, and not recorded. `how` holds of refusals too.
   */
  readonly identify?: ((userId: string | undefined, how?: HowLoggedIn) => void) | undefined;
}

const nouns: Readonly<Record<keyof Limits, string>> = {
  keyrings: 'keyrings',
  keysPerRing: 'keys in a keyring',
  users: 'users',
  accounts: 'accounts',
  apikeys: 'API keys',
  assets: 'assets',
  assetVersions: 'versions of assets',
};

/** Throws `quota` where the tenant has as many as it may have. */
export function needQuota({ tenant }: Pick<Context, 'tenant'>, kind: keyof Limits, count: () => number): void {
  const most = tenant.limits[kind];
  if (most === undefined || count() < most) return;
  throw new KmsError('quota', `the limit of ${most} ${nouns[kind]} is reached`);
}
