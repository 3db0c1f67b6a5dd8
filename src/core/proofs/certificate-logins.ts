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
  presentedProblem,
  provenBy,
} from './client-certificates.ts';
import {
  leaseOf,
  type MeantProofs,
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

type CertificateOutcome = { readonly proven: ProvenCertificate } | RefusedCertificate;

interface RefusedCertificate {
  readonly proven?: undefined;
  readonly misfit: Misfit;
  readonly proof?: KnownProof;
  readonly keyid?: string;
  /** The proof that it is instead. */
  readonly older?: KnownProof;
}

interface ComparedLogin {
  readonly presented: PresentedCertificate | undefined;
  /** Named as for logins by tokens, but it chooses nothing: a certificate is one proof, which it must mean. */
  readonly role: string | undefined;
}

const none =
  'the connection shows none; it needs TLS from the client to the appliance itself, without --behind-proxy between';

/** The proof that a client's certificate logs in by. */
export function compareCertificate(
  tables: Pick<Tables, 'apiKeys' | 'proofs'>,
  { presented, role }: ComparedLogin,
  isUsable: (key: CredentialRow) => boolean,
  now: number,
): CertificateOutcome {
  const problem = presented ? presentedProblem(presented) : none;
  if (!presented || problem !== undefined) return { misfit: { check: 'certificate', reason: problem ?? none } };
  const proven = provenBy(tables, presented);
  if (role !== undefined) {
    const { keyid, proofs } = proofsOfRole(tables, role, 'certificate', now);
    const isMeant =
      proven && (role === proven.proof.id || (keyid === proven.proof.apikeyId && !tables.proofs.byId(role)));
    if (!isMeant) return misfitOfRole({ keyid, proofs }, presented, proven?.proof);
  }
  if (!proven) return { misfit: { check: 'authority', reason: 'no API key has it as a proof' } };
  return inForce(tables, proven, isUsable, now);
}

/** Why a certificate is not the proof that the login means. The proof that it came nearest to tells. */
function misfitOfRole(
  { keyid, proofs }: MeantProofs,
  presented: PresentedCertificate,
  older: KnownProof | undefined,
): CertificateOutcome {
  let nearest: CertificateOutcome | undefined;
  for (const proof of proofs) {
    const fit = compare(proof, presented);
    const misfit: Misfit =
      'problem' in fit ? { check: fit.problem, reason: fit.reason } : { check: 'role', reason: 'it is an older proof' };
    if (misfit.check === 'role') return { misfit, proof, ...(older && { older }) };
    if (!nearest || rankOf({ misfit }) > rankOf(nearest)) nearest = { misfit, proof };
  }
  const reason = 'no API key of that name or id has a certificate as a proof';
  return nearest ?? { misfit: { check: 'role', reason }, ...(keyid !== undefined && { keyid }) };
}

function inForce(
  { apiKeys }: Pick<Tables, 'apiKeys'>,
  proven: ProvenCertificate,
  isUsable: (key: CredentialRow) => boolean,
  now: number,
): CertificateOutcome {
  const { proof, from } = proven;
  if (!proof.active) return { misfit: { check: 'api-key', reason: 'the proof is switched off' }, proof };
  if (!holdsNow(proven, now)) {
    const reason = now < from ? 'it is not valid yet' : 'it, its proof or an authority of it has expired';
    return { misfit: { check: 'time', reason }, proof };
  }
  const key = apiKeys.credentialById(proof.apikeyId);
  if (key && isUsable(key)) return { proven };
  return { misfit: { check: 'api-key', reason: 'its API key is disabled, expired, or not for this address' }, proof };
}

const order: readonly CertificateCheck[] = ['certificate', 'role', 'authority', 'name', 'time', 'api-key'];

function rankOf(outcome: CertificateOutcome): number {
  return outcome.proven ? order.length : order.indexOf(outcome.misfit.check);
}

interface CertificateLogin extends ComparedLogin {
  /** The lease that is wanted; undefined = as long as may be. */
  readonly seconds: number | undefined;
  /** The same was recorded just before, and needs no record again. */
  readonly isRecorded: boolean;
}

/** Opens a session that is bound to the key of the certificate. Throws `invalid` if it does not fit. */
export function loginByCertificate(
  ctx: PublicContext,
  { presented, role, seconds, isRecorded }: CertificateLogin,
  lifetimes: WorkloadLifetimes,
  isUsable: (key: CredentialRow) => boolean,
): OpenedSession {
  const { tx, world } = ctx;
  const outcome = compareCertificate(tx, { presented, role }, isUsable, world.now());
  if (!outcome.proven || !presented) throw refusal(ctx, outcome, isRecorded);
  const { proof, subject } = outcome.proven;
  ctx.identify?.(proof.apikeyId, { proof: proof.id, subject });
  const boundTo = presentedKey(presented) ?? '';
  const details = { certificate: factsOf(proof, presented) };
  const workload = leaseOf(seconds, lifetimes);
  return openWorkloadSession(ctx, { proof, subject, details, boundTo }, { ...lifetimes, workload });
}

/** Recorded under the API key that was meant; one that was refused just before is counted alone. */
function refusal(ctx: Pick<PublicContext, 'identify'>, outcome: CertificateOutcome, isRecorded: boolean): KmsError {
  if (outcome.proven) throw new KmsError('internal', 'a certificate that fits is not refused');
  const { misfit, proof, keyid = proof?.apikeyId, older } = outcome;
  const { check, reason } = misfit;
  ctx.identify?.(isRecorded ? undefined : keyid, {
    refusedBy: check,
    ...(proof && { proof: proof.id }),
    ...(older && { olderProof: older.id, olderProofOf: older.apikeyId }),
  });
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
