// The callers of AWS's clients: the tenant and the secret of an access key id, and whether the request is signed with
// it. An access key id says which tenant it is of; the host does not.
import { activityRecord } from '../../core/activity.ts';
import type { World } from '../../core/context.ts';
import type { Proven } from '../../core/credential.ts';
import { Bearer } from '../../core/credential.ts';
import { secretOf } from '../../core/proofs/access-keys.ts';
import { isSessionKeyId, sessionKeyId, sessionSecret } from '../../core/proofs/aws-sessions.ts';
import { keyedHmac, type Mac } from '../../crypto/fast-hash.ts';
import { hashSecret } from '../../crypto/secrets.ts';
import type { OpenState } from '../../http/appliance-port.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import { type Failure, failed, unknownCaller } from './errors.ts';
import { lookAt } from './found-keys.ts';
import { type Authorization, isSigned, readAuthorization, type Scope, signingKey, whyUnsigned } from './sigv4.ts';

export interface AwsCaller {
  readonly handle: TenantHandle;
  readonly credential: Bearer | Proven;
}

const expired = failed('ExpiredTokenException', 'The security token included in the request is expired');
const mismatch = failed(
  'InvalidSignatureException',
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.',
);
/** Tenants of access keys that are remembered. */
const mostRemembered = 10_000;

/** An access key, as far as it was found. */
interface Found {
  readonly handle: TenantHandle;
  readonly credential: Bearer | Proven;
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

export class AwsCallers {
  readonly #world: World;
  /** Names of tenants by access key id, least recently used first. */
  readonly #tenants = new Map<string, string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The caller, or why there is none. Throws `rate-limited`. */
  async callerOf(open: OpenState, request: ApiRequest, body: Uint8Array, scope: Scope): Promise<AwsCaller | Failure> {
    const read = readAuthorization(request);
    if (read === 'missing') return failed('MissingAuthenticationTokenException', 'Missing Authentication Token');
    if (read === 'incomplete') {
      return failed(
        'IncompleteSignatureException',
        'Authorization header requires Credential, SignedHeaders and Signature.',
      );
    }
    const why = whyUnsigned(request, read, scope, this.#world.now());
    if (why !== undefined) return failed('InvalidSignatureException', why);
    const found = await this.#find(open, request, read);
    const origin = { tenant: found?.handle.tenant.id ?? 'aws', address: request.remoteAddress ?? 'local' };
    // The same request, sent again with another date, is one try.
    // The text is made for a refused try alone.
    const tried = {
      get token() {
        return `${read.accessKeyId} ${Buffer.from(body).toString('latin1')}`;
      },
      role: undefined,
    };
    const { outcome, isRepeated } = await open.people.workloads.attempt(origin, tried, async () => ({
      proven: found && this.#isSignedBy(found, request, read, body) ? found : undefined,
    }));
    if (outcome.proven) {
      const { handle, credential, expiresAt = Number.POSITIVE_INFINITY } = outcome.proven;
      return expiresAt > this.#world.now() ? { handle, credential } : expired;
    }
    if (!found) return unknownCaller;
    if (!isRepeated) await this.#recordFailure(found, request);
    return mismatch;
  }

  #isSignedBy({ macs }: Found, request: ApiRequest, read: Authorization, body: Uint8Array): boolean {
    return macs.some((mac) => isSigned(request, read, mac, body));
  }

  async #find(open: OpenState, request: ApiRequest, read: Authorization): Promise<Found | undefined> {
    const { accessKeyId } = read;
    const token = headerOf(request, 'x-amz-security-token');
    if (isSessionKeyId(accessKeyId) !== (token !== undefined)) return undefined;
    if (token !== undefined && sessionKeyId(token) !== accessKeyId) return undefined;
    const name = this.#tenants.get(accessKeyId);
    const known = name === undefined ? undefined : open.tenants.byName(name);
    const handles = known ? [known] : open.tenants.names().flatMap((each) => open.tenants.byName(each) ?? []);
    for (const handle of handles) {
      const found = await this.#findIn(handle, read, token);
      if (!found) continue;
      this.#remember(accessKeyId, handle.tenant.name);
      return found;
    }
    return undefined;
  }

  #findIn(handle: TenantHandle, read: Authorization, token: string | undefined): Promise<Found | undefined> {
    const { store, tenant } = handle;
    return lookAt(store, ({ proofs, workloadSessions }) => {
      if (token === undefined) return accessKeyOf(handle, proofs.bySubject('aws', read.accessKeyId), read);
      const tokenHash = hashSecret(token);
      const session = workloadSessions.byTokenHash(tokenHash);
      if (!session) return undefined;
      const macs = openEpochs(tenant.keys).flatMap(
        (epoch) =>
          signingMac(tenant, `${tokenHash} ${epoch}`, read, () => sessionSecret(tenant.keys, token, epoch)) ?? [],
      );
      const { apikeyId: keyid, proofId: proof, expiresAt } = session;
      return { handle, credential: new Bearer(token), macs, keyid, proof, expiresAt };
    });
  }

  #remember(accessKeyId: string, tenant: string): void {
    this.#tenants.delete(accessKeyId);
    const [oldest] = this.#tenants.size >= mostRemembered ? this.#tenants.keys() : [];
    if (oldest !== undefined) this.#tenants.delete(oldest);
    this.#tenants.set(accessKeyId, tenant);
  }

  async #recordFailure({ handle, keyid, proof }: Found, { remoteAddress: address }: ApiRequest): Promise<void> {
    const props = { proof, refusedBy: 'signature', dialect: 'aws' };
    await handle.store.transaction((tx) =>
      tx.record(
        activityRecord(this.#world, { keyid, action: 'none', validAction: false, status: 400, props, address }),
      ),
    );
  }
}

function accessKeyOf(handle: TenantHandle, proof: KnownProof | undefined, read: Authorization): Found | undefined {
  if (!proof?.active) return undefined;
  const { keys } = handle.tenant;
  // The sealed secret is in the name, so that a key whose row changes is made again.
  const mac = signingMac(handle.tenant, `${proof.id} ${proof.sealed?.text}`, read, () => secretOf(keys, proof));
  return {
    handle,
    credential: { proof: proof.id, subject: read.accessKeyId },
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

/** Epochs whose keys are whole. */
function openEpochs({ epoch, epochs, key }: TenantHandle['tenant']['keys']): readonly number[] {
  const held = epochs.filter((each) => {
    try {
      return each === epoch || key('proof', each) !== undefined;
    } catch {
      return false;
    }
  });
  return held.toReversed();
}
