// Authentication: of a bearer credential, which is an API key or an access token, told apart by their form; and of a
// client certificate. Authorization is another file's.
import { hashApiKey } from '../crypto/fast-hash.ts';
import { hashSecret } from '../crypto/secrets.ts';
import type { AddressSet } from '../model/addresses.ts';
import { flagsOfText, parseFlags } from '../model/flags.ts';
import type { Tables } from '../store/port.ts';
import type { CredentialRow } from '../store/tables/api-keys.ts';
import { letsIn } from './accounts.ts';
import type { Caller } from './context.ts';
import { awsSessionOf } from './proofs/aws-sessions.ts';
import { holdsNow, type PresentedCertificate, provenBy } from './proofs/client-certificates.ts';
import { type KnownWorkload, workloadOf } from './proofs/workload-sessions.ts';
import { authenticateToken, type TokenVerdict } from './sessions.ts';

/** A bearer credential as received. It is hashed once, however often it is looked up. */
export class Bearer {
  readonly token: string;
  /** Whether the request is signed with the secret that goes with the token, as those of clients of AWS are. */
  readonly isSigned: boolean;
  #apiKeyHash: string | undefined | null = null;

  constructor(token: string, isSigned = false) {
    this.token = token;
    this.isSigned = isSigned;
  }

  /** Hash under which a token of this text is stored. */
  get tokenHash(): string {
    return hashSecret(this.token);
  }

  /** Hash under which an API key of this text is stored; undefined if the text is not an API key by form. */
  get apiKeyHash(): string | undefined {
    if (this.#apiKeyHash === null) this.#apiKeyHash = hashApiKey(this.token);
    return this.#apiKeyHash;
  }
}

/** A proof that a surface has checked: the signature of an access key. Whether it still holds is decided here. */
export interface Proven {
  /** Its id. */
  readonly proof: string;
  /** The program, in the words of its proof. */
  readonly subject: string;
}

/** Origin of a request. */
export interface Origin {
  /** Through the local socket or from within the process: this machine, which has no address. */
  readonly local?: boolean | undefined;
  readonly remoteAddress?: string | undefined;
  /** The certificate that the client showed in the TLS handshake. */
  readonly certificate?: PresentedCertificate | undefined;
}

interface Credential {
  readonly caller: Caller;
  /** False for a known credential that has ended: its use is recorded, and refused. */
  readonly usable: boolean;
}

/** The administrator at the machine, who opened the data directory or its socket. */
export const localCaller: Caller = { kind: 'local', id: 'local', flags: parseFlags({ '*': true }) };

const noFlags = parseFlags({});

/** The tenant's credential for this token; undefined if there is none. */
export function authenticate(
  tables: Pick<Tables, 'apiKeys' | 'sessions' | 'users' | 'proofs' | 'workloadSessions'>,
  credential: Bearer | Proven,
  from: Origin,
  now: number,
): Credential | undefined {
  if ('proof' in credential) return checkedProof(tables, credential, from, now);
  const { token, apiKeyHash, isSigned } = credential;
  if (apiKeyHash === undefined) {
    const workload = workloadOf(tables, token, now, from.certificate);
    return workload ? workloadCredential(workload, isSigned, from, now) : userOf(authenticateToken(tables, token, now));
  }
  const key = tables.apiKeys.credential(apiKeyHash);
  return key && holderOf(key, from, now);
}

/** The tenant's API key that the client's certificate proves; undefined if there is none. */
export function authenticateCertificate(
  tables: Pick<Tables, 'apiKeys' | 'proofs'>,
  from: Origin,
  now: number,
): Credential | undefined {
  const proven = provenBy(tables, from.certificate);
  const key = proven && tables.apiKeys.credentialById(proven.proof.apikeyId);
  if (!proven || !key) return undefined;
  const { caller, usable } = holderOf(key, from, now);
  const proof = { id: proven.proof.id, subject: proven.subject };
  return { caller: { ...caller, proof }, usable: usable && holdsNow(proven, now) };
}

/** Undefined for a proof that is gone. */
function checkedProof(
  { proofs, apiKeys }: Pick<Tables, 'apiKeys' | 'proofs'>,
  { proof: id, subject }: Proven,
  from: Origin,
  now: number,
): Credential | undefined {
  const proof = proofs.byId(id);
  const key = proof && apiKeys.credentialById(proof.apikeyId);
  if (!proof || !key) return undefined;
  const { caller, usable } = holderOf(key, from, now);
  return { caller: { ...caller, proof: { id, subject } }, usable: usable && proof.active };
}

/**
 * Clients of AWS send the token of their session in the clear with each request, and sign with its secret. The token
 * without a signature is refused.
 */
function workloadCredential(
  { session, key, isGood }: KnownWorkload,
  isSigned: boolean,
  from: Origin,
  now: number,
): Credential {
  const { caller, usable } = holderOf(key, from, now);
  const { proofId: id, subject, tokenHash } = session;
  const isProven = isSigned || awsSessionOf(session) === undefined;
  return { caller: { ...caller, proof: { id, subject, session: tokenHash } }, usable: usable && isGood && isProven };
}

function holderOf(key: CredentialRow, from: Origin, now: number): Credential {
  const { id, flagsText, accountId, userId } = key;
  const caller: Caller = { kind: 'apikey', id, flags: flagsOfText(flagsText), accountId };
  const usable = isUsable(key, from, now);
  return { caller: userId === undefined ? caller : { ...caller, userId }, usable };
}

/** Whether a key may be used now, and from there. */
export function isUsable(key: CredentialRow, from: Origin, now: number): boolean {
  return letsIn(key, now) && isGoodFrom(key.addresses, from);
}

/** A caller at the machine itself could do without the key. */
function isGoodFrom(addresses: AddressSet | undefined, { local, remoteAddress }: Origin): boolean {
  return !addresses || local === true || (remoteAddress !== undefined && addresses.has(remoteAddress));
}

/** An access token has the flags that its user has now. */
function userOf(verdict: TokenVerdict | undefined): Credential | undefined {
  if (!verdict) return undefined;
  const { userId } = verdict;
  if (verdict.kind === 'ended') return { caller: { kind: 'user', id: userId, userId, flags: noFlags }, usable: false };
  const { session, flagsText } = verdict;
  return { caller: { kind: 'user', id: userId, userId, session, flags: flagsOfText(flagsText) }, usable: true };
}

/** Notes that an API key is in use, and the proof by which. */
export function noteKeyUse(
  { apiKeys, proofs }: Pick<Tables, 'apiKeys' | 'proofs'>,
  { id, proof }: Caller,
  now: number,
): void {
  apiKeys.noteUse(id, now);
  if (proof) proofs.noteUse(proof.id, now);
}
