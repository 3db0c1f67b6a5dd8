// Proofs of an API key are made, listed, switched off and on, and removed here. Each hands out all of the key's flags,
// so its maker must hold them; it ends with the key, and its sessions end with it.
import type { Answer, Body } from '../../api/endpoints.ts';
import { hashSecret, newApiKeySecret } from '../../crypto/secrets.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { ResourceRef } from '../../model/activity-details.ts';
import { flagsOfText } from '../../model/flags.ts';
import type { JsonObject } from '../../model/json.ts';
import { mostAccessKeys, mostProofs } from '../../model/proof-limits.ts';
import { checkedTrust, type TrustInput } from '../../model/trust.ts';
import type { Tables } from '../../store/port.ts';
import type { ApiKey } from '../../store/tables/api-keys.ts';
import type { Proof, ProofKind } from '../../store/tables/proofs.ts';
import { apiKeyThing, findApiKey } from '../accounts.ts';
import { holderNeeded, isOperatorTenant, mayGrant, mayTouch } from '../authorization.ts';
import type { Context } from '../context.ts';
import { noteWayIn } from '../persons.ts';
import { newAccessKey } from './access-keys.ts';
import { draftCertificate } from './certificate-proofs.ts';
import {
  certificateAnswer,
  proofAnswer,
  proofsOf,
  type ShownProof,
  secretAnswer,
  secretProof,
} from './proof-answers.ts';
import type { TokenVerifier } from './token-verifier.ts';

type NewProof = Answer<'addProof'>;
type ProofInput = Body<'addProof'>;

interface AddProof {
  readonly keyid: string;
  readonly proof: ProofInput;
  readonly verifier: Pick<TokenVerifier, 'publicKeys'>;
}

/** The answer alone has the secret of one that has one. */
export function addProof(ctx: Context, { keyid, proof, verifier }: AddProof): NewProof {
  const { tx, caller } = ctx;
  const key = findApiKey(tx, keyid);
  mayTouch(caller, key);
  mayGrant(caller, flagsOfText(key.flagsText));
  const all = proofsOf(ctx, key);
  const needRoom = (): void => {
    if (all.length >= mostProofs) throw new KmsError('quota', `an API key has at most ${mostProofs} proofs`);
  };
  needFieldsOfKind(proof);
  if (proof.kind === 'certificate') return addCertificate(ctx, key, proof, needRoom);
  needRoom();
  const { name = '', active } = proof;
  switch (proof.kind) {
    case 'secret':
      return addSecret(ctx, key);
    case 'aws':
      return addAccessKey(ctx, key, name, active);
    case 'jwt': {
      const given = proof.jwks === undefined ? proof : { ...proof, jwks: verifier.publicKeys(proof.jwks) };
      const trust = checkedTrust(trustInput(given), mayAskPrivate(ctx));
      // A spread, since settings are stored as a plain object.
      return shownAsNew(
        ctx,
        key,
        insert(ctx, key, { kind: 'jwt', name, active, subject: trust.issuer, settings: { ...trust } }),
      );
    }
  }
}

/** Fields of each kind, besides the kind itself. */
const fieldsOfKind: Readonly<Record<ProofInput['kind'], readonly (keyof ProofInput)[]>> = {
  secret: [],
  aws: ['name', 'active'],
  certificate: ['name', 'active', 'certificate', 'ca', 'san', 'issue', 'days'],
  jwt: ['name', 'active', 'issuer', 'audience', 'subject', 'claims', 'jwks', 'jwksUrl', 'ca', 'once', 'longest'],
};

/** Throws `invalid` for a field of another kind: it would be lost, and with it what its sender meant. */
function needFieldsOfKind({ kind, ...fields }: ProofInput): void {
  const own: readonly string[] = fieldsOfKind[kind];
  const odd = Object.keys(fields).find((field) => !own.includes(field));
  if (odd !== undefined) throw invalidField(odd, `is not for proofs of the kind ${kind}`);
}

/** Throws `invalid` for fields that are missing. */
function trustInput({ issuer, audience, subject, claims, jwks, jwksUrl, ca, once, longest }: ProofInput): TrustInput {
  if (issuer === undefined) throw invalidField('issuer', 'is required');
  if (audience === undefined) throw invalidField('audience', 'is required: which audience the tokens are issued for');
  return {
    issuer,
    audience,
    ...(subject !== undefined && { subject }),
    ...(claims !== undefined && { claims }),
    ...(jwks !== undefined && { jwks }),
    ...(jwksUrl !== undefined && { jwksUrl }),
    ...(ca !== undefined && { ca }),
    ...(once !== undefined && { once }),
    ...(longest !== undefined && { longest }),
  };
}

/** Whether the appliance may ask private addresses on this caller's word: those that run it may. */
function mayAskPrivate({ caller, tenant }: Pick<Context, 'caller' | 'tenant'>): boolean {
  return caller.kind === 'local' || (isOperatorTenant(tenant) && caller.flags.covers('*'));
}

function addSecret(ctx: Context, key: ApiKey): NewProof {
  if (key.hasSecret) {
    throw new KmsError('conflict', 'the API key has a secret: remove that first, or make another API key');
  }
  const secret = newApiKeySecret(ctx.world.random);
  ctx.tx.apiKeys.setSecret(key.id, hashSecret(secret));
  noteWayIn(ctx, key.id);
  noteProof(ctx, key, { id: secretProof, kind: 'secret' }, 'add');
  return { ...secretAnswer({ ...key, hasSecret: true }), key: secret };
}

function addAccessKey(ctx: Context, key: ApiKey, name: string, active: boolean | undefined): NewProof {
  const { tx, world, tenant } = ctx;
  if (tx.proofs.ofKey(key.id).filter(({ kind }) => kind === 'aws').length >= mostAccessKeys) {
    throw new KmsError('quota', `an API key has at most ${mostAccessKeys} access keys: remove one first`);
  }
  const { accessKeyId, secretAccessKey, sealed } = newAccessKey(tenant.keys, key.id, world.random);
  const made = insert(ctx, key, { kind: 'aws', name, active, subject: accessKeyId, settings: {}, sealed });
  return { ...shownAsNew(ctx, key, made), secretAccessKey };
}

function addCertificate(ctx: Context, key: ApiKey, given: ProofInput, needRoom: () => void): NewProof {
  const draft = draftCertificate(ctx, key.id, given);
  const { subject, renews, told, made } = draft;
  // A spread, since settings are stored as a plain object.
  const settings = { ...draft.settings };
  if (renews) {
    ctx.tx.proofs.setSettings(renews.id, settings);
    noteWayIn(ctx, key.id);
    const proof = findProof(ctx.tx, key, renews.id);
    noteProof(ctx, key, proof, 'renew');
    return { ...proofAnswer(ctx, proof), renewed: true };
  }
  needRoom();
  const proof = insert(ctx, key, {
    kind: 'certificate',
    name: given.name ?? '',
    active: given.active,
    subject,
    settings,
  });
  noteProof(ctx, key, proof, 'add', made);
  return { ...proofAnswer(ctx, proof), ...told };
}

interface Draft {
  readonly kind: ProofKind;
  readonly name: string;
  readonly subject: string;
  readonly settings: JsonObject;
  readonly sealed?: Proof['sealed'];
  /** Default: true. */
  readonly active?: boolean | undefined;
}

function insert(ctx: Context, key: ApiKey, { sealed, active = true, ...draft }: Draft): Proof {
  const { tx, world, caller } = ctx;
  const proof: Proof = {
    ...draft,
    sealed,
    active,
    id: world.newId('proof'),
    apikeyId: key.id,
    createdAt: world.now(),
    createdBy: caller.id,
    usedAt: undefined,
  };
  tx.proofs.insert(proof);
  noteWayIn(ctx, key.id);
  return proof;
}

function shownAsNew(ctx: Context, key: ApiKey, proof: Proof): ShownProof {
  noteProof(ctx, key, proof, 'add');
  return proofAnswer(ctx, proof);
}

interface ProofRef {
  readonly keyid: string;
  readonly proof: string;
}

/** Switches a proof off, from the next request on, or on again. */
export function setProof(ctx: Context, { keyid, proof: id }: ProofRef, active: boolean): ShownProof {
  const { tx, caller } = ctx;
  const key = findApiKey(tx, keyid);
  mayTouch(caller, key);
  if (id === secretProof) throw invalidField('proof', 'a secret cannot be switched off: remove it, or disable the key');
  const proof = findProof(tx, key, id);
  if (active) mayGrant(caller, flagsOfText(key.flagsText));
  const needHolder = holderNeeded(ctx);
  tx.proofs.setActive(proof.id, active);
  // A stolen token of it must not work again when it is switched on again.
  if (!active) tx.workloadSessions.eraseOfProof(proof.id);
  needHolder();
  noteProof(ctx, key, proof, active ? 'enable' : 'disable');
  return proofAnswer(ctx, { ...proof, active });
}

/** Its sessions end. */
export function removeProof(ctx: Context, { keyid, proof: id }: ProofRef): Record<string, never> {
  const { tx, caller } = ctx;
  const key = findApiKey(tx, keyid);
  mayTouch(caller, key);
  const needHolder = holderNeeded(ctx);
  if (id === secretProof) {
    if (!key.hasSecret) throw unknownProof();
    tx.apiKeys.setSecret(key.id, undefined);
    needHolder();
    noteProof(ctx, key, { id, kind: 'secret' }, 'remove');
    return {};
  }
  const proof = findProof(tx, key, id);
  tx.workloadSessions.eraseOfProof(proof.id);
  tx.proofs.erase(proof.id);
  needHolder();
  noteProof(ctx, key, proof, 'remove');
  return {};
}

function findProof({ proofs }: Pick<Tables, 'proofs'>, key: ApiKey, id: string): Proof {
  const found = proofs.ofKey(key.id).find((each) => each.id === id || (each.kind === 'aws' && each.subject === id));
  if (!found) throw unknownProof();
  return found;
}

function unknownProof(): KmsError {
  return new KmsError('not-found', 'the API key has no such proof');
}

interface NotedProof {
  readonly id: string;
  readonly kind: string;
  readonly subject?: string | undefined;
  readonly settings?: JsonObject;
}

/** Characters of a trust in a record; of a longer one, the claims are left out. */
const longestTrust = 4096;

/**
 * The record tells by what the proof is known, since nothing else does once it is removed.
 *
 * @param made further objects that were made for it.
 */
function noteProof(
  ctx: Context,
  key: ApiKey,
  { id, kind, subject, settings }: NotedProof,
  what: string,
  made: readonly ResourceRef[] = [],
): void {
  const known = settings && knownBy({ kind, subject, settings });
  const proof: ResourceRef = { type: 'proof', id, name: kind };
  const objects = [proof, ...made];
  ctx.note({ object: apiKeyThing(key), objects, proofChange: what, ...(known && { trust: known }) });
}

function knownBy({ kind, subject, settings }: Required<Omit<NotedProof, 'id'>>): JsonObject | undefined {
  if (kind === 'certificate') return certificateAnswer({ subject, settings });
  if (kind !== 'jwt') return subject === undefined ? undefined : { subject };
  const { issuer, audiences: audience, subject: sub, claims } = settings;
  const full = { issuer, audience, subject: sub, claims };
  return JSON.stringify(full).length > longestTrust ? { issuer } : full;
}
