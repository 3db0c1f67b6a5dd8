// Proofs as answers and records show them.
import type { Answer } from '../../api/endpoints.ts';
import type { ResourceRef } from '../../model/activity-details.ts';
import type { JsonObject } from '../../model/json.ts';
import { timestamp } from '../../model/timestamp.ts';
import { type Trust, trustOf } from '../../model/trust.ts';
import type { Tables } from '../../store/port.ts';
import type { ApiKey } from '../../store/tables/api-keys.ts';
import type { KnownProof, Proof } from '../../store/tables/proofs.ts';
import { findApiKey } from '../accounts.ts';
import { accountOf } from '../aws-names.ts';
import type { Caller, Context } from '../context.ts';
import { authorityOfProof, certificateTrust, fingerprintOfProof } from './client-certificates.ts';

/** The id under which the secret is listed among the proofs. */
export const secretProof = 'secret';

export type ShownProof = Answer<'listProofs'>['proofs'][number];

/** The secret first, then the others, oldest first. */
export function listProofs(ctx: Context, { keyid }: { readonly keyid: string }): Answer<'listProofs'> {
  return { proofs: proofsOf(ctx, findApiKey(ctx.tx, keyid)) };
}

export function proofsOf(ctx: Pick<Context, 'tx' | 'tenant'>, key: ApiKey): ShownProof[] {
  const others = ctx.tx.proofs.ofKey(key.id).map((proof) => proofAnswer(ctx, proof));
  return key.hasSecret ? [secretAnswer(key), ...others] : others;
}

export function secretAnswer(key: ApiKey): ShownProof {
  return {
    id: secretProof,
    kind: 'secret',
    name: '',
    active: true,
    createdAt: timestamp(key.createdAt),
    createdBy: key.createdBy ?? null,
    lastUsedAt: null,
  };
}

export function proofAnswer({ tenant }: Pick<Context, 'tenant'>, proof: Proof): ShownProof {
  return {
    id: proof.id,
    kind: proof.kind,
    name: proof.name,
    active: proof.active,
    createdAt: timestamp(proof.createdAt),
    createdBy: proof.createdBy,
    lastUsedAt: proof.usedAt ?? null,
    ...(proof.kind === 'aws' &&
      proof.subject !== undefined && { accessKeyId: proof.subject, awsAccount: accountOf(tenant.id) }),
    ...(proof.kind === 'certificate' && { ...certificateAnswer(proof), ...caAnswer(proof) }),
    ...(proof.kind === 'jwt' && trustAnswer(trustOf(proof))),
  };
}

function trustAnswer({ issuer, audiences, subject, claims, jwks, jwksUrl, ca, once, longest }: Trust) {
  return {
    issuer,
    audience: [...audiences],
    claims: Object.fromEntries(Object.entries(claims).map(([name, values]) => [name, [...values]])),
    once,
    longest,
    ...(subject !== undefined && { subject }),
    ...(jwks !== undefined && { jwks }),
    ...(jwksUrl !== undefined && { jwksUrl }),
    ...(ca !== undefined && { ca }),
  };
}

/** The authority itself, which no record needs. */
function caAnswer(proof: Proof): { readonly ca?: string } {
  const { ca } = certificateTrust(proof);
  return ca === undefined ? {} : { ca };
}

/** Fields of a certificate proof in answers and records. */
export function certificateAnswer(proof: Pick<KnownProof, 'subject' | 'settings'>) {
  const { san, notAfter, issued } = certificateTrust(proof);
  const authority = authorityOfProof(proof);
  return {
    fingerprint: fingerprintOfProof(proof),
    notAfter: timestamp(notAfter),
    ...(san !== undefined && { san }),
    ...(authority !== undefined && { authority }),
    ...(issued && { issued }),
  };
}

/** How a caller was proved, for every record of what it did. */
export function proofProps({ proof }: Caller): JsonObject | undefined {
  return proof && { proof: proof.id, ...(proof.subject !== undefined && { subject: proof.subject }) };
}

/** The active proofs of a key, for a record of what they hand out. */
export function proofThings({ proofs }: Pick<Tables, 'proofs'>, keyid: string): ResourceRef[] {
  return proofs
    .ofKey(keyid)
    .filter(({ active }) => active)
    .map(({ id, kind }) => ({ type: 'proof', id, name: kind }));
}
