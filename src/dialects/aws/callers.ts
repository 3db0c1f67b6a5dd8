// The callers of AWS's clients: the tenant and the secret of an access key id, and whether the request is signed with
// it. An access key id says which tenant it is of; the host does not.
import { activityRecord } from '../../core/activity.ts';
import type { Tenant, World } from '../../core/context.ts';
import type { Proven } from '../../core/credential.ts';
import { Bearer, noteKeyUse } from '../../core/credential.ts';
import { secretOf } from '../../core/proofs/access-keys.ts';
import {
  type AwsSession,
  awsSessionOf,
  isSessionKeyId,
  sessionKeyId,
  sessionSecret,
} from '../../core/proofs/aws-sessions.ts';
import { proofProps } from '../../core/proofs/proof-answers.ts';
import { keyedHmac, type Mac } from '../../crypto/fast-hash.ts';
import { hashSecret } from '../../crypto/secrets.ts';
import { KmsError } from '../../errors.ts';
import { identify } from '../../http/admission.ts';
import type { OpenState, State } from '../../http/appliance-port.ts';
import { Turn } from '../../http/fair-queue.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';
import type { Handler } from '../../http/request-log.ts';
import type { RequestResult } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import { type Failure, failed, unknownCaller } from './errors.ts';
import { lookAt } from './found-keys.ts';
import {
  type Authorization,
  isSigned,
  readAuthorization,
  type Scope,
  signingKey,
  type Unsigned,
  whyUnsigned,
} from './sigv4.ts';

export interface AwsCaller {
  readonly handle: TenantHandle;
  readonly credential: Bearer | Proven;
  /** The session behind temporary credentials. */
  readonly session?: AwsSession | undefined;
  /** Facts for the records of its requests. */
  readonly props?: JsonObject | undefined;
}

/** A request whose caller is not known for certain, or no longer to be let in. */
export interface RefusedCaller {
  readonly failure: Failure;
  /** The check that refused it, for the log and the metrics. */
  readonly check:
    | 'form'
    | 'missing'
    | 'incomplete'
    | Unsigned['check']
    | 'access-key'
    | 'account'
    | 'signature'
    | 'expired'
    | 'throttled';
  /** Why, for the log alone. */
  readonly reason?: string | undefined;
  /** The tenant and the API key that it names, rightly or not. */
  readonly tenant?: string | undefined;
  readonly keyid?: string | undefined;
}

const unread: Readonly<Record<'missing' | 'incomplete', Failure>> = {
  missing: failed('MissingAuthenticationTokenException', 'Missing Authentication Token'),
  incomplete: failed(
    'IncompleteSignatureException',
    'Authorization header requires Credential, SignedHeaders and Signature.',
  ),
};
const expired = failed('ExpiredTokenException', 'The security token included in the request is expired');
const mismatch = failed(
  'InvalidSignatureException',
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.',
);
/** Tenants of access keys that are remembered. */
const mostRemembered = 10_000;

/** An access key or session that a request names. */
interface Found {
  readonly caller: AwsCaller;
  /**
   * MACs under the signing keys, with one of which the request must be signed. Not the keys: those may be overwritten
   * while the request waits for its turn.
   */
  readonly macs: readonly Mac[];
  /** The API key and the proof, for the record of a wrong signature. */
  readonly keyid: string;
  readonly proof: string;
  /** Absent for what does not end by itself. */
  readonly expiresAt?: number;
}

/** An access key id as a request names it. */
interface NamedSecret {
  readonly read: Authorization;
  /** Present if it is that of a session. */
  readonly token: string | undefined;
  readonly isToSign: boolean;
}

/** An answer for which no endpoint is needed. */
interface Answered {
  readonly status: number;
  readonly action?: string;
  readonly cause?: unknown;
  /** Throws if the answer was made of data that does not hold: nothing is recorded then. */
  readonly needFresh?: (tables: Tables) => void;
}

export class AwsCallers {
  readonly #world: World;
  readonly #ways: Ways;
  /** Ways of answers for which no endpoint is needed, by their name in the metrics. */
  readonly #answers = new Map<string, Handler<RequestResult>>();
  /** Tenants by access key id, least recently used first. Names change hands, ids do not. */
  readonly #tenants = new Map<string, Pick<Tenant, 'id' | 'name'>>();

  constructor(world: World, ways: Ways) {
    this.#world = world;
    this.#ways = ways;
  }

  /** The caller, or why there is none. A right signature is never made to wait. */
  async callerOf(
    open: OpenState,
    request: ApiRequest,
    body: Uint8Array,
    scope: Scope,
    requestId: string,
  ): Promise<AwsCaller | RefusedCaller> {
    const read = readAuthorization(request);
    if (read === 'missing' || read === 'incomplete') return { failure: unread[read], check: read };
    const why = whyUnsigned(request, read, scope, this.#world.now());
    // No key is made for a day or region that the request merely claims.
    const found = await this.#find(open, request, read, why === undefined);
    if (!why && found?.macs.some((mac) => isSigned(asSigned(request), read, mac, body))) {
      open.people.workloads.forgive(originOf(request, found));
      const { expiresAt = Number.POSITIVE_INFINITY } = found;
      if (expiresAt > this.#world.now()) return found.caller;
      await this.#recordFailure(found, request, 'expired', requestId);
      return refusedAs({ failure: expired, check: 'expired' }, found);
    }
    const refusal: RefusedCaller = why
      ? { failure: failed('InvalidSignatureException', why.message), check: why.check }
      : refusalOf(found);
    // The same request, sent again with another date, is one try.
    const tried = { token: `${read.accessKeyId} ${Buffer.from(body).toString('latin1')}`, role: undefined };
    return this.#refuse(open, request, refusedAs(refusal, found), { found, tried, requestId });
  }

  /** Counts a request that is not signed rightly; too many from one address are told to wait, and why. */
  async #refuse(
    { people }: OpenState,
    request: ApiRequest,
    refusal: RefusedCaller,
    {
      found,
      tried,
      requestId,
    }: { found: Found | undefined; tried: { readonly token: string; readonly role: undefined }; requestId: string },
  ): Promise<RefusedCaller> {
    try {
      const origin = originOf(request, found);
      await people.workloads.attempt(origin, tried, async () => ({}));
      if (found && !people.workloads.isRecorded(origin, [found.proof, refusal.check])) {
        await this.#recordFailure(found, request, refusal.check, requestId);
      }
      return refusal;
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'rate-limited') throw error;
      const { message = refusal.failure.type } = refusal.failure;
      const wait = `Too many such requests came from this address: try again in ${error.retryAfter ?? 1} s.`;
      return { ...refusal, failure: failed('ThrottlingException', `${message} ${wait}`), check: 'throttled' };
    }
  }

  /**
   * Records, logs and counts an answer for which no endpoint is needed. Returns the id of the API key; undefined if it
   * is not to be used any more, or from there.
   */
  async recordAnswer(caller: AwsCaller, request: ApiRequest, answer: Answered): Promise<string | undefined> {
    const keyid = await this.#record(caller, request, answer);
    const { action = 'aws.other', cause } = answer;
    const status = keyid === undefined ? 401 : answer.status;
    const way = this.#answers.get(action) ?? this.#ways.logged({ path: 'aws', counted: action }, passedOn);
    this.#answers.set(action, way);
    const result = { outcome: { status, body: {}, cause }, action, dialect: 'aws', tenant: caller.handle.tenant.id };
    await way(request, { ...result, granted: status < 400, ...(keyid !== undefined && { keyid }) });
    return keyid;
  }

  #record(
    { handle, credential, props: more }: AwsCaller,
    request: ApiRequest,
    { status, action = 'none', needFresh }: Answered,
  ): Promise<string | undefined> {
    return handle.store.transaction((tx) => {
      needFresh?.(tx);
      const found = identify(tx, credential, request, this.#world.now());
      if (!found) return undefined;
      const { caller: by, usable } = found;
      if (usable) noteKeyUse(tx, by, this.#world.now());
      const props = { ...proofProps(by), ...more, dialect: 'aws' };
      const draft = { keyid: by.id, action, validAction: usable && status < 400, status: usable ? status : 401, props };
      tx.record(activityRecord(this.#world, { ...draft, address: request.remoteAddress }));
      return usable ? by.id : undefined;
    });
  }

  /** The access key or session that a request names; undefined if there is none. */
  async #find(
    open: OpenState,
    request: ApiRequest,
    read: Authorization,
    isToSign: boolean,
  ): Promise<Found | undefined> {
    const { accessKeyId } = read;
    const token = headerOf(request, 'x-amz-security-token');
    if (isSessionKeyId(accessKeyId) !== (token !== undefined)) return undefined;
    if (token !== undefined && sessionKeyId(token) !== accessKeyId) return undefined;
    const named = { read, token, isToSign };
    const known = this.#remembered(open, accessKeyId);
    const cached =
      (known && (await lookAt(known.store, findIn(known, named)))) ?? (await this.#findCached(open, named));
    // A session without its secret may be one that another node is just making.
    const isWhole = cached !== undefined && cached.macs.length > 0;
    const found = isWhole || !isToSign ? cached : ((await this.#findFresh(open, request, named)) ?? cached);
    return found && this.#remember(accessKeyId, found);
  }

  async #findCached(open: OpenState, named: NamedSecret): Promise<Found | undefined> {
    const looks = open.tenants.handles().map((handle) => lookAt(handle.store, findIn(handle, named)));
    return firstFound(looks);
  }

  /**
   * The same as another node may have made it in the last second. Strangers make up ids, too: their looks wait in line
   * as requests do, and an address that sent many of them has none until its wait is over.
   */
  async #findFresh(open: OpenState, request: ApiRequest, named: NamedSecret): Promise<Found | undefined> {
    if (open.people.workloads.hasToWait(originOf(request, undefined))) return undefined;
    const { remoteAddress = 'local' } = request;
    const turn = new Turn(this.#ways.queue, 'unknown', () => remoteAddress);
    await turn.take();
    try {
      return await firstFound(open.tenants.handles().map((handle) => handle.store.transaction(findIn(handle, named))));
    } finally {
      turn.leave();
    }
  }

  /** The tenant that an access key id was last found in, if it is still served under its name. */
  #remembered({ tenants }: OpenState, accessKeyId: string): TenantHandle | undefined {
    const last = this.#tenants.get(accessKeyId);
    const handle = last && tenants.byName(last.name);
    return handle?.tenant.id === last?.id ? handle : undefined;
  }

  #remember(accessKeyId: string, found: Found): Found {
    const { id, name } = found.caller.handle.tenant;
    this.#tenants.delete(accessKeyId);
    const [oldest] = this.#tenants.size >= mostRemembered ? this.#tenants.keys() : [];
    if (oldest !== undefined) this.#tenants.delete(oldest);
    this.#tenants.set(accessKeyId, { id, name });
    return found;
  }

  async #recordFailure(
    { caller, keyid, proof }: Found,
    { remoteAddress: address }: ApiRequest,
    refusedBy: string,
    requestId: string,
  ): Promise<void> {
    const props = { proof, refusedBy, requestId, dialect: 'aws' };
    await caller.handle.store.transaction((tx) =>
      tx.record(
        activityRecord(this.#world, { keyid, action: 'none', validAction: false, status: 400, props, address }),
      ),
    );
  }
}

/**
 * Looks in all tenants. If one of them cannot serve, keys of the others work all the same: ids of access keys are
 * random, so that no two tenants have the same.
 */
async function firstFound(looks: readonly Promise<Found | undefined>[]): Promise<Found | undefined> {
  const looked = await Promise.allSettled(looks);
  const [found] = looked.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : []));
  if (found) return found;
  for (const each of looked) {
    if (each.status === 'fulfilled') continue;
    const { reason } = each;
    if (!(reason instanceof KmsError) || reason.code !== 'unavailable') throw reason;
    // The answer does not say which.
    throw new KmsError('unavailable', 'not all tenants can serve: whether one has this key cannot be told', {
      cause: reason,
    });
  }
  return undefined;
}

/** The look for an access key or a session in one tenant. */
function findIn(handle: TenantHandle, { read, token, isToSign }: NamedSecret) {
  return ({ proofs, workloadSessions }: Tables): Found | undefined => {
    if (token === undefined) {
      return accessKeyOf(handle, proofs.bySubject('aws', read.accessKeyId), isToSign ? read : undefined);
    }
    const tokenHash = hashSecret(token);
    const session = workloadSessions.byTokenHash(tokenHash);
    if (!session) return undefined;
    const secret = isToSign ? sessionSecret(session, token) : undefined;
    const mac = secret === undefined ? undefined : signingMac(handle.tenant, tokenHash, read, () => secret);
    const { apikeyId: keyid, proofId: proof, expiresAt } = session;
    const aws = awsSessionOf(session);
    const props = aws && { sessionName: aws.name };
    const caller = { handle, credential: new Bearer(token, true), session: aws, props };
    return { caller, macs: mac ? [mac] : [], keyid, proof, expiresAt };
  };
}

/** @param read absent if no signature is checked. */
function accessKeyOf(
  handle: TenantHandle,
  proof: KnownProof | undefined,
  read: Authorization | undefined,
): Found | undefined {
  if (!proof?.active) return undefined;
  const { keys } = handle.tenant;
  // The sealed secret is in the name, so that a key whose row changes is made again.
  const name = `${proof.id} ${proof.sealed?.text}`;
  const mac = read && signingMac(handle.tenant, name, read, () => secretOf(keys, proof));
  return {
    caller: { handle, credential: { proof: proof.id, subject: proof.subject ?? '' } },
    macs: mac ? [mac] : [],
    keyid: proof.apikeyId,
    proof: proof.id,
  };
}

/** Under a key that is kept until the tenant's keys are wiped: the secret is opened once a day, not at each request. */
function signingMac(
  { keys }: TenantHandle['tenant'],
  of: string,
  { day, region, service }: Authorization,
  secret: () => string,
): Mac | undefined {
  const name = `aws-signing ${of} ${day} ${region} ${service}`;
  const key = keys.opened(name, () => signingKey(secret(), { day, region, service }));
  return key && keyedHmac(key);
}

/** Tries that are counted together: not those with tokens, which need no access key. */
function originOf({ remoteAddress: address = 'local' }: ApiRequest, found: Found | undefined) {
  return { tenant: `signatures ${found?.caller.handle.tenant.id ?? ''}`, address };
}

/** The serving of a request that is answered already. */
export const passedOn = async (_request: ApiRequest, _state: State, result: RequestResult): Promise<RequestResult> =>
  result;

/** The request with the host as its client signed it. */
function asSigned(request: ApiRequest): ApiRequest {
  const { sentHost: host, headers } = request;
  return host === undefined ? request : { ...request, headers: { ...headers, host } };
}

function refusalOf(found: Found | undefined): RefusedCaller {
  if (!found) return { failure: unknownCaller, check: 'access-key' };
  // An earlier program made its secret in another way: its client gets a new one, as of any that has expired.
  const isOfOld = found.macs.length === 0 && found.caller.credential instanceof Bearer;
  return isOfOld ? { failure: expired, check: 'expired' } : { failure: mismatch, check: 'signature' };
}

function refusedAs(refusal: RefusedCaller, found: Found | undefined): RefusedCaller {
  return found ? { ...refusal, tenant: found.caller.handle.tenant.id, keyid: found.keyid } : refusal;
}
