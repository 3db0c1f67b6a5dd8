// Clients of KMIP: the tenant to which a certificate belongs. A message has no address that would name one, so all are
// asked, and the oldest proof counts; a connection stays with it, and ends with it. Refused clients are logged, and
// wrong passwords braked and recorded.
import { activityRecord } from '../../core/activity.ts';
import { authenticate, type Bearer } from '../../core/credential.ts';
import {
  isOfKnownAuthority,
  type PresentedCertificate,
  type ProvenCertificate,
  provenBy,
} from '../../core/proofs/client-certificates.ts';
import { toHex } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import { KmsError } from '../../errors.ts';
import type { AppliancePort, OpenState } from '../../http/appliance-port.ts';
import type { ApiRequest } from '../../http/request.ts';
import type { TenantHandle } from '../../http/tenant-directory.ts';

/** An API key's id, and what is to be its secret. */
export interface NamedBearer {
  readonly name: string;
  readonly bearer: Bearer;
}

export interface FoundClient {
  /** The proof that its certificate is, which may be switched off; undefined for one of a known authority alone. */
  readonly proof?: string;
  /** Whether the proof that the connection began with is gone, or counts no longer. */
  readonly hasEnded?: boolean;
  /** Whether this is the first message of its connection. */
  readonly isNew?: boolean;
  /** The tenant of the proof; or all whose authorities signed the certificate. At least one. */
  readonly handles: readonly [TenantHandle, ...TenantHandle[]];
}

interface FoundProof {
  readonly handle: TenantHandle;
  readonly proof: ProvenCertificate['proof'];
}

/** The proof with which a connection began. */
interface Binding extends FoundProof {
  /** The tenants when it was found to be the oldest: one that comes back may have an older one. */
  readonly among: readonly TenantHandle[];
}

export class KmipClients {
  readonly #appliance: AppliancePort;
  /** By certificate: one object for each connection. */
  readonly #bindings = new WeakMap<PresentedCertificate, Binding>();

  constructor(appliance: AppliancePort) {
    this.#appliance = appliance;
  }

  /** The tenant that knows the certificate, or those that know its authority; undefined if there is none. */
  async find(
    open: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
  ): Promise<FoundClient | undefined> {
    const binding = this.#bindings.get(certificate);
    if (binding) return this.#again(open, certificate, binding);
    const handles = open.tenants.handles();
    const read = readProofs(handles, certificate);
    const found =
      read.length > 0
        ? this.#oldest(open, certificate, address, { found: read, among: handles })
        : await this.findNow(open, certificate, address);
    return found && { ...found, isNew: true };
  }

  /** The same for certain: another node may have made the proof, or taken it away. */
  async findNow(
    open: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
  ): Promise<FoundClient | undefined> {
    const handles = open.tenants.handles();
    const now = this.#appliance.world.now();
    const looks = await Promise.all(
      handles.map((handle) =>
        handle.store.transaction((tables) => ({
          proofs: proofIn(handle, provenBy(tables, certificate)),
          authorities: isOfKnownAuthority(tables, certificate, now) ? [handle] : [],
        })),
      ),
    );
    const proofs = looks.flatMap((look) => look.proofs);
    if (proofs.length > 0) return this.#oldest(open, certificate, address, { found: proofs, among: handles });
    const [first, ...others] = looks.flatMap((look) => look.authorities);
    return first && { handles: [first, ...others] };
  }

  /**
   * The client of an open connection. It ends with its proof: no other one takes it over, be it of the same tenant or
   * of another.
   */
  async #again({ tenants }: OpenState, certificate: PresentedCertificate, binding: Binding): Promise<FoundClient> {
    const { handle, proof } = binding;
    const among = tenants.handles();
    const isAsBefore = among === binding.among;
    const isOwn = (found: FoundProof | undefined): found is FoundProof =>
      found?.proof.id === proof.id && found.handle.tenant.id === handle.tenant.id;
    let [now] = readProofs(isAsBefore ? [handle] : among, certificate);
    // For certain: it may be so new that this node has not read of it.
    if (!isOwn(now)) [now] = oldestFirst((await looksFor(among, certificate)).flat());
    if (!isOwn(now)) return { proof: proof.id, hasEnded: true, handles: [handle] };
    if (!isAsBefore) this.#bindings.set(certificate, { ...now, among });
    return { proof: proof.id, handles: [now.handle] };
  }

  /**
   * The client by the oldest proof, which may be switched off: no proof that somebody adds in another tenant takes a
   * client from its own.
   */
  #oldest(
    { people }: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
    { found, among }: { readonly found: readonly FoundProof[]; readonly among: readonly TenantHandle[] },
  ): FoundClient | undefined {
    const [oldest, ...others] = oldestFirst(found);
    if (!oldest) return undefined;
    const { handle, proof } = oldest;
    this.#bindings.set(certificate, { handle, proof, among });
    const fingerprint = fingerprintOf(certificate);
    const origin = { tenant: handle.tenant.id, address: address ?? 'local' };
    if (others.length > 0 && !people.workloads.isRecorded(origin, ['several tenants', fingerprint])) {
      this.#appliance.logger.warn(
        {
          ...{ address, certificate: fingerprint, tenant: handle.tenant.name, proof: proof.id },
          others: others.map((other) => ({ tenant: other.handle.tenant.name, proof: other.proof.id })),
        },
        'KMIP: a client certificate is a proof in several tenants: the oldest counts',
      );
    }
    return { proof: proof.id, handles: [handle] };
  }

  /** The tenant in which a client works: of those that know its authority, the one that has the credential. */
  async tenantOf({ handles }: FoundClient, named: NamedBearer | undefined, from: ApiRequest): Promise<TenantHandle> {
    const [first, ...others] = handles;
    if (!named || others.length === 0) return first;
    const now = this.#appliance.world.now();
    for (const handle of handles) {
      if (await handle.store.transaction((tables) => authenticate(tables, named.bearer, from, now))) return handle;
    }
    return first;
  }

  /** A line of the log for a client that was refused. */
  logRefusal(request: ApiRequest, { tenant }: TenantHandle, reason: string, named?: NamedBearer): void {
    const { certificate, remoteAddress: address } = request;
    const fields = { address, certificate: certificate && fingerprintOf(certificate), tenant: tenant.name, reason };
    this.#appliance.logger.info({ ...fields, ...(named && { keyid: named.name }) }, 'KMIP: a client was refused');
  }

  /**
   * Brakes and records a wrong name or password, as for programs of other kinds: the record is of the API key that it
   * names, once a minute. Returns the error to answer with.
   */
  async refuseCredential(
    { people }: OpenState,
    request: ApiRequest,
    handle: TenantHandle,
    { named, action, error }: { readonly named: NamedBearer; readonly action: string; readonly error: unknown },
  ): Promise<unknown> {
    const { remoteAddress: address } = request;
    const { name, bearer } = named;
    const origin = { tenant: handle.tenant.id, address: address ?? 'local' };
    try {
      const tried = { token: bearer.token, role: name };
      await people.workloads.attempt(origin, tried, async () => ({}));
    } catch (wait) {
      if (wait instanceof KmsError && wait.code === 'rate-limited') return wait;
      throw wait;
    }
    if (people.workloads.isRecorded(origin, [name, 'password'])) return error;
    const { world } = this.#appliance;
    await handle.store.transaction((tx) => {
      if (!tx.apiKeys.credentialById(name)) return;
      // The use of a key that is off has its record already.
      if (authenticate(tx, bearer, request, world.now())?.caller.id === name) return;
      const props = { refusedBy: 'password', dialect: 'kmip' };
      tx.record(activityRecord(world, { keyid: name, action, validAction: false, status: 401, props, address }));
    });
    return error;
  }
}

function proofIn(handle: TenantHandle, fit: ProvenCertificate | undefined): readonly FoundProof[] {
  return fit ? [{ handle, proof: fit.proof }] : [];
}

/** The proof in each tenant, as far as this node knows, oldest first. */
function readProofs(handles: readonly TenantHandle[], certificate: PresentedCertificate): readonly FoundProof[] {
  return oldestFirst(
    handles.flatMap((handle) =>
      proofIn(
        handle,
        handle.store.read((tables) => provenBy(tables, certificate)),
      ),
    ),
  );
}

/** The same in transactions, which see what another node did. */
function looksFor(handles: readonly TenantHandle[], certificate: PresentedCertificate) {
  return Promise.all(
    handles.map((handle) => handle.store.transaction((tables) => proofIn(handle, provenBy(tables, certificate)))),
  );
}

/** Numbers of proofs are each tenant's own, but times and ids are comparable. */
function oldestFirst(found: readonly FoundProof[]): readonly FoundProof[] {
  return found.toSorted(({ proof: a }, { proof: b }) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** SHA-256 of a certificate, as browsers and OpenSSL show it, but without colons. */
export function fingerprintOf({ leaf }: Pick<PresentedCertificate, 'leaf'>): string {
  return toHex(sha256(leaf));
}
