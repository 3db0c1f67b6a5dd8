// Context of every operation of the core: the transaction, the caller, the tenant, and the outside world (clock,
// randomness) as values, so that an operation is a function of its arguments.

import type { DecodedHeader } from '../crypto/header.ts';
import type { KeyReference } from '../crypto/key-hash.ts';
import { KmsError } from '../errors.ts';
import type { ActivityDetails, ResourceRef } from '../model/activity-details.ts';
import type { CustodyPolicy } from '../model/custody.ts';
import type { Flags } from '../model/flags.ts';
import type { Kem } from '../model/kems.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Transaction } from '../store/port.ts';
import type { KeyUseKind } from '../store/tables/key-uses.ts';
import type { Ring } from '../store/tables/rings.ts';

type IdPrefix =
  | 'ring'
  | 'mkey'
  | 'key'
  | 'asset'
  | 'user'
  | 'sess'
  | 'fact'
  | 'acct'
  | 'apik'
  | 'act'
  | 'tenant'
  | 'proof'
  | 'rule'
  | 'appr'
  | 'glass';

/** `id` is what the activity log records as `keyid`. */
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
  /** How an API key was proved, if not by its secret. */
  readonly proof?: CallerProof;
}

interface CallerProof {
  readonly id: string;
  /** The program, in the words of its proof. */
  readonly subject?: string;
  /** The workload session, by the hash of its token. */
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
  /** Users with one of these flags need a second factor. */
  readonly secondFactorFor?: readonly string[];
  /** Custody policy for new rings. Default: either custody. */
  readonly custody?: CustodyPolicy;
}

/** The outside world as an operation sees it. */
export interface World {
  /** Epoch milliseconds, for times that outlast the process. The clock may be set, forward or back. */
  now(): number;
  /** Monotonic clock in milliseconds, for waits and rate limits. */
  elapsed(): number;
  /** Bytes from the system's secure generator. */
  random(length: number): Uint8Array;
  /** A new id: the prefix, `_`, a lower-case ULID later than all before it. */
  newId(prefix: IdPrefix): string;
  /** KEM of rings whose makers name none. Default: `x25519`. */
  readonly defaultKem?: Kem;
}

/** Content of a hash or header. */
export interface SealedInput {
  /** Undefined if there was no header, or a malformed one. */
  readonly header: DecodedHeader | undefined;
  /** Ring and key behind the header's hash, or the given hash; undefined if this tenant cannot open it. */
  readonly reference: KeyReference | undefined;
  /** The ring, even a deleted one, if it was looked up. */
  readonly ring?: Ring | undefined;
}

/** A key of a ring, and the purpose it is handed out for. */
export interface KeyHandedOut {
  readonly id: string;
  readonly kind: KeyUseKind;
}

/** An act on a further thing. */
export interface FurtherAct {
  /** Without the ring's name. */
  readonly actions: readonly string[];
  /** The ring or managed key that it is about, in lower case. */
  readonly ring?: string | undefined;
  readonly object?: ResourceRef | undefined;
  /** Several things, instead of one. */
  readonly objects?: readonly ResourceRef[] | undefined;
  /** Names that the thing loses by it. */
  readonly lost?: readonly string[] | undefined;
}

export interface Context {
  readonly tx: Transaction;
  readonly caller: Caller;
  /** The request's hash or header as read by authorization, if that needed it. */
  readonly sealed?: SealedInput | undefined;
  readonly tenant: Tenant;
  readonly world: World;
  /**
   * Notes what is done, for the request's record in the activity log; a note of a request that then fails is dropped.
   * Call this and the methods below on the context, which keeps the note.
   */
  note(this: Pick<Context, 'note'>, deed: ActivityDetails): void;
  /** Notes that the answer hands out a key, even in the body of a refusal; it counts as a use of that key. */
  handsOut(this: Pick<Context, 'handsOut'>, key: KeyHandedOut): void;
  /** Notes a further thing that is done, which takes a flag of its own: a rule of approvals may cover it, too. */
  touches(this: Pick<Context, 'touches'>, what: FurtherAct): void;
  /**
   * Notes that the request did several things, in order. Each is recorded with its own status, and with its deed if
   * given, instead of one record for the request.
   */
  did(this: Pick<Context, 'did'>, statuses: readonly number[], deeds?: readonly ActivityDetails[]): void;
  /** Address that the request came from; undefined if from this machine. */
  readonly address?: string | undefined;
  /** Whether it came over the local socket or in process, so that no network saw it. */
  readonly isLocal?: boolean | undefined;
  /** The dialect that the request came in; undefined for the native interface. */
  readonly dialect?: string | undefined;
}

/** Extra properties of a login's activity record. */
export interface HowLoggedIn {
  /** The password was right, but a needed second factor was missing or wrong. */
  readonly secondFactor?: 'missing' | 'wrong';
  /** The login went through an identity provider. */
  readonly operation?: 'oidc';
  /** The proof of an API key by which a program logged in, or tried to. */
  readonly proof?: string;
  /** The program, in the words of its proof. */
  readonly subject?: string;
  /** The check that refused its token. */
  readonly refusedBy?: string;
  /** The older proof that the certificate is, instead of one of the API key that the login means, and its API key. */
  readonly olderProof?: string;
  readonly olderProofOf?: string;
}

/** Context of an operation that needs no credential. */
export interface PublicContext extends Omit<Context, 'caller' | 'handsOut' | 'did' | 'touches'> {
  /**
   * Sets the id that the request is recorded under: of the user whose name or link it came with, or of the API key that
   * a program logs in as. `undefined` for an unknown name: such a request is counted, not recorded. `how` applies to
   * refusals too.
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

/** Throws `quota` if the tenant has reached its limit. */
export function needQuota({ tenant }: Pick<Context, 'tenant'>, kind: keyof Limits, count: () => number): void {
  const most = tenant.limits[kind];
  if (most === undefined || count() < most) return;
  throw new KmsError('quota', `the limit of ${most} ${nouns[kind]} is reached`);
}
