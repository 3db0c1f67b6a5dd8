// Logins by a client certificate, for software that wants a token. The token is good only in connections with a
// certificate of the same key, which must still fit the proof.
import { toHex } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Tables } from '../../store/port.ts';
import type { CredentialRow } from '../../store/tables/api-keys.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import type { PublicContext } from '../context.ts';
import {
  compare,
  holdsNow,
  type PresentedCertificate,
  type ProvenCertificate,
  presentedCertificate,
  presentedKey,
  provenBy,
} from './client-certificates.ts';
import {
  leaseOf,
  type OpenedSession,
  openWorkloadSession,
  proofsOfRole,
  type WorkloadLifetimes,
} from './workload-sessions.ts';

/** The check of a certificate that failed, in order: there is one, somebody trusts it, its name, its dates, the key. */
type CertificateCheck = 'certificate' | 'role' | 'authority' | 'name' | 'time' | 'api-key';

interface Misfit {
  readonly check: CertificateCheck;
  readonly reason: string;
}

type CertificateOutcome =
  | { readonly proven: ProvenCertificate }
  | { readonly proven?: undefined; readonly misfit: Misfit; readonly proof?: KnownProof; readonly keyid?: string };

/** The proof that a client's certificate logs in by. `role` is as for logins by tokens. */
export function compareCertificate(
  tables: Pick<Tables, 'apiKeys' | 'proofs'>,
  presented: PresentedCertificate | undefined,
  role: string | undefined,
  now: number,
): CertificateOutcome {
  if (!presented || presentedKey(presented) === undefined) {
    return { misfit: { check: 'certificate', reason: 'the connection has none, or a malformed one' } };
  }
  if (role === undefined) {
    const proven = provenBy(tables, presented);
    return proven ? inTime(proven, now) : { misfit: { check: 'authority', reason: 'no API key has it as a proof' } };
  }
  const { keyid, proofs } = proofsOfRole(tables, role, 'certificate', now);
  const reason = 'no API key of that name or id has a certificate as a proof';
  if (keyid === undefined || proofs.length === 0) {
    return { misfit: { check: 'role', reason }, ...(keyid !== undefined && { keyid }) };
  }
  let nearest: CertificateOutcome | undefined;
  for (const proof of proofs) {
    const fit = compare(proof, presented);
    const told = 'problem' in fit ? { misfit: { check: fit.problem, reason: fit.reason }, proof } : inTime(fit, now);
    if (told.proven) return told;
    if (!nearest || rankOf(told) > rankOf(nearest)) nearest = told;
  }
  return nearest ?? { misfit: { check: 'role', reason } };
}

function inTime(proven: ProvenCertificate, now: number): CertificateOutcome {
  if (holdsNow(proven, now)) return { proven };
  const { proof } = proven;
  if (!proof.active) return { misfit: { check: 'api-key', reason: 'the proof is switched off' }, proof };
  const reason = now < proven.from ? 'it is not valid yet' : 'it has expired, or an authority of it has';
  return { misfit: { check: 'time', reason }, proof };
}

const order: readonly CertificateCheck[] = ['certificate', 'role', 'authority', 'name', 'time', 'api-key'];

function rankOf(outcome: CertificateOutcome): number {
  return outcome.proven ? order.length : order.indexOf(outcome.misfit.check);
}

interface CertificateLogin {
  readonly presented: PresentedCertificate | undefined;
  readonly role: string | undefined;
  /** The lease that is wanted; undefined = as long as may be. */
  readonly seconds: number | undefined;
  /** It was refused just before, and needs no record again. */
  readonly isRepeated: boolean;
}

/** Opens a session that is bound to the key of the certificate. Throws `invalid` if it does not fit. */
export function loginByCertificate(
  ctx: PublicContext,
  { presented, role, seconds, isRepeated }: CertificateLogin,
  lifetimes: WorkloadLifetimes,
  isUsable: (key: CredentialRow) => boolean,
): OpenedSession {
  const { tx, world } = ctx;
  const outcome = compareCertificate(tx, presented, role, world.now());
  if (!outcome.proven || !presented) throw refusal(isRepeated ? {} : ctx, outcome);
  const { proof, subject } = outcome.proven;
  const key = tx.apiKeys.credentialById(proof.apikeyId);
  if (!key || !isUsable(key)) {
    const reason = 'its API key is disabled, expired, or not for this address';
    throw refusal(ctx, { misfit: { check: 'api-key', reason }, proof });
  }
  ctx.identify?.(proof.apikeyId, { proof: proof.id, subject });
  const boundTo = presentedKey(presented) ?? '';
  const details = { certificate: factsOf(proof, presented) };
  const workload = leaseOf(seconds, lifetimes);
  return openWorkloadSession(ctx, { proof, subject, details, boundTo }, { ...lifetimes, workload });
}

function refusal(ctx: Pick<PublicContext, 'identify'>, outcome: CertificateOutcome): KmsError {
  if (outcome.proven) throw new KmsError('internal', 'a certificate that fits is not refused');
  const { misfit, proof, keyid = proof?.apikeyId } = outcome;
  const { check, reason } = misfit;
  ctx.identify?.(keyid, { refusedBy: check, ...(proof && { proof: proof.id }) });
  const message = `the client certificate was refused: ${reason}`;
  return new KmsError('invalid', message, { body: { message, check } });
}

/** Facts about the certificate for clients. */
function factsOf(proof: KnownProof, presented: PresentedCertificate): JsonObject {
  const { commonName = '', serial, subjectKeyId, authorityKeyId } = presentedCertificate(presented) ?? {};
  return {
    name: proof.name === '' ? proof.id : proof.name,
    commonName,
    serialNumber: BigInt(`0x${serial ? toHex(serial) : '0'}`).toString(),
    subjectKeyId: subjectKeyId ? toHex(subjectKeyId) : '',
    authorityKeyId: authorityKeyId ? toHex(authorityKeyId) : '',
  };
}
