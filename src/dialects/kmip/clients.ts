// Clients of KMIP: the tenant to which a certificate belongs. A message has no address that would name one, so all are
// asked, and the oldest proof counts. Refused clients are logged, and wrong passwords braked and recorded.
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

interface FoundClient {
  /** Whether its certificate proves an API key, which may be switched off. */
  readonly isKnown: boolean;
  /** The tenant of the proof; or all whose authorities signed the certificate. At least one. */
  readonly handles: readonly [TenantHandle, ...TenantHandle[]];
}

interface FoundProof {
  readonly handle: TenantHandle;
  readonly proof: ProvenCertificate['proof'];
}

export class KmipClients {
  readonly #appliance: AppliancePort;
  /**
   * Proofs by certificates, one object for each connection. Proofs that are added are younger, so the one that counted
   * still counts while it is there.
   */
  readonly #proofs = new WeakMap<PresentedCertificate, { readonly tenant: string; readonly proof: string }>();

  constructor(appliance: AppliancePort) {
    this.#appliance = appliance;
  }

  /** The tenant that knows the certificate, or those that know its authority; undefined if there is none. */
  async find(
    open: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
  ): Promise<FoundClient | undefined> {
    const { tenants } = open;
    const last = this.#proofs.get(certificate);
    const before = last && tenants.byName(last.tenant);
    const fit = before?.store.read((tables) => provenBy(tables, certificate));
    if (before && fit && fit.proof.id === last?.proof) return { isKnown: true, handles: [before] };
    const handles = tenants.names().flatMap((name) => tenants.byName(name) ?? []);
    const read = handles.flatMap((handle) =>
      proofIn(
        handle,
        handle.store.read((tables) => provenBy(tables, certificate)),
      ),
    );
    return read.length > 0 ? this.#oldest(open, certificate, address, read) : this.findNow(open, certificate, address);
  }

  /** The same for certain: another node may have made the proof, or taken it away. */
  async findNow(
    open: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
  ): Promise<FoundClient | undefined> {
    const { tenants } = open;
    const handles = tenants.names().flatMap((name) => tenants.byName(name) ?? []);
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
    if (proofs.length > 0) return this.#oldest(open, certificate, address, proofs);
    const [first, ...others] = looks.flatMap((look) => look.authorities);
    return first && { isKnown: false, handles: [first, ...others] };
  }

  /**
   * The client by the oldest proof, which may be switched off: no proof that somebody adds in another tenant takes a
   * client from its own.
   */
  #oldest(
    { people }: OpenState,
    certificate: PresentedCertificate,
    address: string | undefined,
    found: readonly FoundProof[],
  ): FoundClient | undefined {
    const [oldest, ...others] = found.toSorted((a, b) => compareAge(a.proof, b.proof));
    if (!oldest) return undefined;
    const { handle, proof } = oldest;
    this.#proofs.set(certificate, { tenant: handle.tenant.name, proof: proof.id });
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
    return { isKnown: true, handles: [handle] };
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

/** Numbers of proofs are each tenant's own, but times and ids are comparable. */
function compareAge(a: ProvenCertificate['proof'], b: ProvenCertificate['proof']): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** SHA-256 of a certificate, as browsers and OpenSSL show it, but without colons. */
export function fingerprintOf({ leaf }: Pick<PresentedCertificate, 'leaf'>): string {
  return toHex(sha256(leaf));
}
