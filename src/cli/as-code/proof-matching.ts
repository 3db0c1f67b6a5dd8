// Proofs in the file of an API key, compared with those that the key has. A proof is known by what it trusts; one that
// differs in that is another proof, which is added before the former one is removed, as far as there is room for both.
import { createHash, X509Certificate } from 'node:crypto';
import type { Proof } from '../../api/proofs.ts';
import { invalidField, KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject, sameJson } from '../../model/json.ts';
import { mostAccessKeys, mostProofs } from '../../model/proof-limits.ts';
import { epochTimeOf, timestamp } from '../../model/timestamp.ts';
import { checkedTrust, type TrustInput } from '../../model/trust.ts';
import type { Problem } from './kind.ts';

/** Fields of each kind of proof in a file. */
const fieldsOfKind: Readonly<Record<string, readonly string[]>> = {
  aws: ['name', 'active'],
  certificate: ['name', 'active', 'certificate', 'fingerprint', 'ca', 'san', 'issue', 'days'],
  jwt: ['name', 'active', 'issuer', 'audience', 'subject', 'claims', 'jwks', 'jwksUrl', 'ca', 'once', 'longest'],
};

/** Changes that make the proofs of a key those of its file. */
export interface ProofChanges {
  readonly added: readonly JsonObject[];
  /** Those added of which there is one that is off and was never used, as a run that was cut off leaves it. */
  readonly again: readonly JsonObject[];
  /** Those whose certificate, or whose authority's, ends later in the file. */
  readonly renewed: readonly { readonly proof: Proof; readonly by: JsonObject }[];
  readonly switched: readonly { readonly proof: Proof; readonly active: boolean }[];
  readonly removed: readonly Proof[];
  /** Those of the removed that go before anything comes: they prove nothing, or leave no room for the secret. */
  readonly first: readonly Proof[];
  /** Those of the removed, and the secret, that go before one of the added comes: they leave no room for it. */
  readonly room: ReadonlyMap<JsonObject, readonly Proof[]>;
}

export function proofsIn(fields: JsonObject): readonly JsonObject[] {
  return Array.isArray(fields.proofs) ? fields.proofs.filter(isJsonObject) : [];
}

/**
 * The secret is no proof of the list: it comes before the others, and goes after them. `kept` are ids of proofs that
 * are off, with their secrets in safe places.
 */
export function proofChanges(
  wanted: readonly JsonObject[],
  shown: readonly Proof[],
  kept: readonly string[],
  isSecretWanted?: boolean,
): ProofChanges {
  const rest = new Set(shown.filter(({ kind }) => kind !== 'secret'));
  const added: JsonObject[] = [];
  const again: JsonObject[] = [];
  const renewed: { proof: Proof; by: JsonObject }[] = [];
  const switched: { proof: Proof; active: boolean }[] = [];
  for (const each of wanted) {
    const identity = wantedIdentity(each);
    const proof = [...rest].find((other) => sameJson(shownIdentity(other, identity), identity));
    if (!proof) {
      added.push(each);
      continue;
    }
    const active = each.active !== false;
    // It is switched on once its secret is kept, and then it is used: that secret may be lost.
    const isLost = !kept.includes(proof.id) && proof.lastUsedAt === null && proofLabel(each) !== undefined;
    if (active && !proof.active && isLost) {
      added.push(each);
      again.push(each);
      continue;
    }
    rest.delete(proof);
    if (isRenewal(each, proof)) renewed.push({ proof, by: each });
    if (proof.active !== active) switched.push({ proof, active });
  }
  const removed = [...rest];
  const off = removed.filter(({ active }) => !active);
  const secret = shown.find(({ kind }) => kind === 'secret');
  const coming: JsonObject[] = isSecretWanted && !secret ? [{ kind: 'secret' }] : [];
  const held = shown.filter((proof) => !off.includes(proof));
  const leaving = isSecretWanted === false && secret ? [...removed, secret] : removed;
  const room = roomFor([...coming, ...added], held, leaving);
  const first = [...off, ...coming.flatMap((each) => room.get(each) ?? [])];
  return { added, again, renewed, switched, removed, first, room };
}

function isRenewal({ kind, certificate, ca }: JsonObject, { notAfter }: Proof): boolean {
  const end = kind === 'certificate' ? certificateIn(ca ?? certificate)?.end : undefined;
  return end !== undefined && notAfter !== undefined && end > epochTimeOf(notAfter) && end > Date.now();
}

interface Kinded {
  readonly kind?: unknown;
}

/**
 * Proofs that go before each of those comes: no more than it needs, and where a limit leaves a choice, of the same kind
 * and the oldest.
 */
function roomFor(
  coming: readonly JsonObject[],
  shown: readonly Proof[],
  removed: readonly Proof[],
): ReadonlyMap<JsonObject, readonly Proof[]> {
  const room = new Map<JsonObject, readonly Proof[]>();
  let held: readonly Kinded[] = shown;
  for (const each of coming) {
    const inWay = removed
      .filter((proof) => held.includes(proof))
      .sort((one, other) => Number(other.kind === each.kind) - Number(one.kind === each.kind));
    // One certificate, or one name by one authority, is one proof.
    const leaving = new Set<Kinded>(inWay.filter((proof) => isSameButName(each, proof)));
    const staying = (): readonly Kinded[] => [...held.filter((proof) => !leaving.has(proof)), each];
    const need = (most: number, isCounted: (proof: Kinded) => boolean): void => {
      const excess = staying().filter(isCounted).length - most;
      const others = inWay.filter((proof) => isCounted(proof) && !leaving.has(proof));
      for (const proof of others.slice(0, Math.max(0, excess))) leaving.add(proof);
    };
    if (each.kind === 'aws') need(mostAccessKeys, ({ kind }) => kind === 'aws');
    need(mostProofs, () => true);
    held = staying();
    room.set(
      each,
      inWay.filter((proof) => leaving.has(proof)),
    );
  }
  return room;
}

export function isSameButName(wanted: JsonObject, proof: Proof): boolean {
  if (wanted.kind !== 'certificate' || proof.kind !== 'certificate' || wanted.issue === true) return false;
  const identity = wantedIdentity({ ...wanted, name: proof.name });
  return sameJson(shownIdentity(proof, identity), identity);
}

/** The identity of a proof in a file. */
function wantedIdentity(proof: JsonObject): JsonObject {
  const { kind, name = '', issue, certificate, fingerprint, ca, san } = proof;
  if (kind === 'jwt') return { kind, name, ...jwtIdentity(proof) };
  if (kind === 'aws') return { kind, name };
  if (issue === true) return { kind, name, issued: true };
  if (ca !== undefined) return { kind, name, ...authorityIn(ca), san: plainSan(san) };
  return { kind, name, fingerprint: fingerprint ?? fingerprintIn(certificate) };
}

/** The same of a proof that is there, in the form of the one that it is compared with. */
function shownIdentity(proof: Proof, { issued: isIssued }: JsonObject): JsonObject {
  const { kind, name, fingerprint, ca, san, issued } = proof;
  if (kind === 'jwt') return { kind, name, ...jwtIdentity({ ...proof }) };
  if (kind === 'aws') return { kind, name };
  if (issued && isIssued) return { kind, name, issued };
  return san === undefined ? { kind, name, fingerprint } : { kind, name, ...authorityIn(ca), san: plainSan(san) };
}

/** An authority is a name and a key, whatever its dates. */
function authorityIn(ca: unknown): JsonObject {
  const { fingerprint, subject } = certificateIn(ca) ?? {};
  return { fingerprint, subject };
}

/** Undefined texts are left out, so that both sides have the same fields. */
function jwtIdentity(proof: JsonObject): JsonObject {
  // Cast: the schema has checked the fields, or the appliance has.
  const trust = trustOf(proof as unknown as TrustInput);
  const { jwks, isPrivateAllowed: _, audiences, ca, ...rest } = trust;
  return {
    ...rest,
    audiences: [...audiences].sort(),
    ...(jwks && { jwks: publicKeysIn(jwks) }),
    ...(ca !== undefined && { ca: certificatesIn(ca) }),
  };
}

/** The certificates of a PEM text, without what stands between them. */
function certificatesIn(pem: string): readonly string[] {
  const [, ...parts] = pem.split('-----BEGIN CERTIFICATE-----');
  return parts.map((part) => part.replace(/-----END.*|\s/gs, ''));
}

function trustOf({ issuer, audience, subject, claims, jwks, jwksUrl, ca, once, longest }: TrustInput) {
  if (!issuer) throw invalidField('issuer', 'is required for a proof of the kind jwt');
  if (!audience) throw invalidField('audience', 'is required for a proof of the kind jwt');
  const given = { issuer, audience, subject, claims, jwks, jwksUrl, ca, once, longest };
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  // Cast: undefined entries are gone.
  return checkedTrust(Object.fromEntries(entries) as unknown as TrustInput, true);
}

/** Members that a public key is known by, which the appliance keeps. */
const members = ['kty', 'kid', 'crv', 'x', 'y', 'n', 'e'];

function publicKeysIn({ keys }: JsonObject): unknown {
  if (!Array.isArray(keys)) return [];
  return keys.filter(isJsonObject).map((key) => Object.fromEntries(members.map((name) => [name, key[name] ?? null])));
}

interface KnownCertificate {
  /** SHA-256 of the public key, in hex. */
  readonly fingerprint: string;
  readonly subject: string;
  /** The last moment of its validity, in epoch milliseconds. */
  readonly end: number;
}

/** The first certificate in a PEM text; undefined if there is none. */
function certificateIn(pem: unknown): KnownCertificate | undefined {
  try {
    const { publicKey, subject, validToDate } = new X509Certificate(String(pem));
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    return { fingerprint: createHash('sha256').update(spki).digest('hex'), subject, end: validToDate.getTime() };
  } catch {
    return undefined;
  }
}

function fingerprintIn(pem: unknown): string | undefined {
  return certificateIn(pem)?.fingerprint;
}

/** Identity of a certificate among the proofs of all API keys; undefined for other proofs, and unreadable ones. */
export function certificateIdentity(proof: JsonObject): string | undefined {
  if (proof.kind !== 'certificate' || proof.issue === true) return undefined;
  const identity = wantedIdentity({ ...proof, name: '' });
  return identity.fingerprint === undefined ? undefined : JSON.stringify(identity);
}

function plainSan(san: unknown): string {
  const text = String(san).replace(/^uri:(?=spiffe:)/, '');
  return /^dns:/i.test(text) ? text.toLowerCase() : text;
}

/** Problems of proofs that would be added, and of the list as a whole. */
export function proofProblems(wanted: readonly JsonObject[], added: readonly JsonObject[]): Problem[] {
  return wanted.flatMap((proof, at): Problem[] => {
    const before = wanted.slice(0, at);
    const path = ['proofs', at];
    const odd = Object.keys(proof).find(
      (field) => field !== 'kind' && !fieldsOfKind[String(proof.kind)]?.includes(field),
    );
    if (odd !== undefined) return [{ path: [...path, odd], message: `is not for proofs of the kind ${proof.kind}` }];
    const label = proofLabel(proof);
    const twins = label === undefined ? [] : before.filter((each) => proofLabel(each) === label);
    // Their secrets would have one place; those that are there have none.
    if (twins.length > 0 && [proof, ...twins].some((each) => added.includes(each))) {
      return [{ path, message: 'another proof of this kind has the same name: give each a name of its own' }];
    }
    if (proof.kind === 'aws' && before.filter(({ kind }) => kind === 'aws').length === mostAccessKeys) {
      return [{ path, message: `an API key has at most ${mostAccessKeys} access keys` }];
    }
    const { certificate, fingerprint } = proof;
    if (certificate !== undefined && fingerprint !== undefined && fingerprintIn(certificate) !== fingerprint) {
      return [{ path: [...path, 'fingerprint'], message: 'is not that of the certificate' }];
    }
    const own = added.includes(proof) ? newProblems(proof, path) : [];
    const same = before.find((each) => isSameCertificate(proof, each));
    // The appliance would renew the one by the other, and have one proof.
    if (own.length > 0 || !same || ![proof, same].some((each) => added.includes(each))) return own;
    const message = `is the same as proofs.${wanted.indexOf(same)}: a renewed certificate takes the place of the former`;
    return [{ path, message }];
  });
}

/** Whether they are one pinned key, or one name by one authority: the appliance renews the one by the other. */
function isSameCertificate(one: JsonObject, other: JsonObject): boolean {
  if ([one, other].some(({ kind, issue }) => kind !== 'certificate' || issue === true)) return false;
  return isSameProof({ ...one, name: '' }, { ...other, name: '' });
}

/** Whether both trust the same, under one name, in whatever texts they say so. */
export function isSameProof(one: JsonObject, other: JsonObject): boolean {
  return sameJson(wantedIdentity(one), wantedIdentity(other));
}

function newProblems(proof: JsonObject, path: Problem['path']): Problem[] {
  if (proof.kind === 'jwt') return trustProblems(proof, path);
  if (proof.kind !== 'certificate') return [];
  const { certificate, fingerprint, ca, san, issue, days } = proof;
  const ways = [certificate !== undefined, ca !== undefined || san !== undefined, issue === true].filter(Boolean);
  if (ways.length === 0 && fingerprint !== undefined) {
    return [
      {
        path: [...path, 'fingerprint'],
        message: 'the key has no such proof, and a fingerprint makes none: give the certificate',
      },
    ];
  }
  if (ways.length !== 1) return [{ path, message: 'expected one of certificate, ca with san, and issue' }];
  if (days !== undefined && issue !== true) return [{ path: [...path, 'days'], message: 'goes with issue: true' }];
  if (issue === true) return [];
  for (const field of ['ca', 'san'] as const) {
    if (certificate === undefined && proof[field] === undefined) return [{ path, message: `${field}: is required` }];
  }
  if (san !== undefined && !/^(?:(?:dns|email|uri):|spiffe:\/\/)[\x21-\x7e]+$/.test(String(san))) {
    const expected = 'expected dns:NAME, email:ADDRESS, uri:URI or spiffe://DOMAIN/PATH';
    return [{ path: [...path, 'san'], message: expected }];
  }
  const pem = certificate === undefined ? 'ca' : 'certificate';
  const { end } = certificateIn(proof[pem]) ?? {};
  if (end === undefined) return [{ path: [...path, pem], message: 'expected a certificate, PEM' }];
  return hasEnded(proof) ? [{ path: [...path, pem], message: `ended at ${timestamp(end)}` }] : [];
}

/** Whether the certificate of a proof in a file has ended. */
export function hasEnded({ ca, certificate }: JsonObject): boolean {
  const { end } = certificateIn(ca ?? certificate) ?? {};
  return end !== undefined && end < Date.now();
}

function trustProblems(proof: JsonObject, path: Problem['path']): Problem[] {
  const { keys } = Object(proof.jwks);
  const isKey = (key: unknown): boolean => isJsonObject(key) && typeof key.kty === 'string';
  if (proof.jwks !== undefined && !(Array.isArray(keys) && keys.length > 0 && keys.every(isKey))) {
    return [{ path: [...path, 'jwks'], message: 'expected keys: a list of public keys (RFC 7517)' }];
  }
  try {
    trustOf(proof as unknown as TrustInput);
    return [];
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    return Object.entries(error.fields ?? {}).map(([field, message]) => ({
      path: [...path, ...field.split('.')],
      message,
    }));
  }
}

/** Ends the name of the file for the secret that the proof brings; undefined if it brings none. */
export function proofLabel({ kind, name = '', issue }: JsonObject): string | undefined {
  const ending = kind === 'aws' ? 'aws' : issue === true ? 'pem' : undefined;
  return ending && (name === '' ? ending : `${name}.${ending}`);
}

/** The proof for people: its kind, its name, and all that decides whom it lets in. */
export function proofText(proof: JsonObject): string {
  const { kind, name = '', issuer, subject, accessKeyId, san, issue, issued, certificate, fingerprint, ca } = proof;
  const { audience, claims, jwks, jwksUrl, once, longest } = proof;
  const named = (words: string, value: unknown) => (value === undefined ? [] : [`${words} ${listText(value)}`]);
  const known = fingerprint ?? (certificate === undefined ? undefined : fingerprintIn(certificate));
  const isIssued = issue === true || issued === true;
  const about = [
    ...[issuer, subject, accessKeyId, san].filter((each) => each !== undefined && each !== ''),
    ...(isIssued ? ['issued here'] : []),
    ...named('audience', audience),
    ...Object.entries(Object(claims)).flatMap(([claim, values]) => named(`${claim}:`, values)),
    ...named('keys', isJsonObject(jwks) ? keysText(jwks) : undefined),
    ...named('keys from', jwksUrl),
    ...named('authority', ca === undefined ? undefined : shortOf(fingerprintIn(ca))),
    ...named('key', isIssued || san !== undefined || known === undefined ? undefined : shortOf(known)),
    ...(once === true ? ['each token once'] : []),
    ...named('for at most', longest === undefined || longest === 86_400 ? undefined : `${longest} s`),
  ];
  return [
    String(kind),
    ...(name === '' ? [] : [`"${name}"`]),
    ...(about.length > 0 ? [`(${about.join(', ')})`] : []),
  ].join(' ');
}

function listText(value: unknown): string {
  return [value].flat().map(String).sort().join(' or ');
}

function shortOf(fingerprint: unknown): string {
  return `${String(fingerprint).slice(0, 16)}…`;
}

/** Pinned keys by their ids, and a digest that tells them from others of the same ids. */
function keysText(jwks: JsonObject): string {
  const ids = Array.isArray(jwks.keys)
    ? jwks.keys.flatMap((key) => (isJsonObject(key) ? [String(key.kid ?? '')] : []))
    : [];
  const digest = createHash('sha256')
    .update(JSON.stringify(publicKeysIn(jwks)))
    .digest('hex');
  return `${ids.filter((id) => id !== '').join(' and ')} ${shortOf(digest)}`.trim();
}

/** The changes in lines for people, each with a sign before it. */
export function changeWords({ added, renewed, switched, removed, first, room }: ProofChanges): readonly string[] {
  const text = (proof: Proof): string => proofText({ ...proof });
  return [
    ...added.map((proof) => `+ ${proofText(proof)}`),
    ...renewed.map(({ proof, by }) => `~ ${text(proof)}: until ${proof.notAfter} → ${endIn(by)}`),
    ...switched.map(({ proof, active }) => `~ ${text(proof)}: switched ${active ? 'on' : 'off'}`),
    ...removed.map((proof) => `- ${text(proof)}`),
    ...[...new Set([...first, ...[...room.values()].flat()])]
      .filter(({ active }) => active)
      .map((proof) => `! ${text(proof)} goes before the new comes: there is no room for both`),
  ];
}

function endIn({ ca, certificate }: JsonObject): string {
  const { end } = certificateIn(ca ?? certificate) ?? {};
  return end === undefined ? 'unknown' : timestamp(end);
}

/** Sentences about proofs that have ended and stay. A pinned key outlives its certificate. */
export function endedProofs({ renewed, removed }: ProofChanges, shown: readonly Proof[]): readonly string[] {
  const changed = new Set([...renewed.map(({ proof }) => proof), ...removed]);
  return shown.flatMap((proof) => {
    const { issued, san, notAfter } = proof;
    const hasEnd = (issued === true || san !== undefined) && notAfter !== undefined && !changed.has(proof);
    const isEnded = hasEnd && epochTimeOf(notAfter) < Date.now();
    return isEnded ? [`its proof ${proofText({ ...proof })} ended at ${notAfter}`] : [];
  });
}

/** The proof as a file has it. */
export function exportedProof(proof: Proof): JsonObject {
  const { kind, name, active, issuer, audience, subject, claims, jwks, jwksUrl, ca, once, longest } = proof;
  const common = { kind, ...(name !== '' && { name }), ...(!active && { active }) };
  if (kind === 'aws') return common;
  if (kind === 'certificate') {
    if (proof.issued) return { ...common, issue: true };
    return proof.san === undefined ? { ...common, fingerprint: proof.fingerprint } : { ...common, ca, san: proof.san };
  }
  return {
    ...common,
    issuer,
    audience: audience?.length === 1 ? audience[0] : audience,
    ...(subject !== undefined && { subject }),
    ...(claims && Object.keys(claims).length > 0 && { claims: plainClaims(claims) }),
    ...(jwks && { jwks }),
    ...(jwksUrl !== undefined && { jwksUrl }),
    ...(ca !== undefined && { ca }),
    ...(once && { once }),
    ...(longest !== undefined && longest !== 86_400 && { longest }),
  };
}

function plainClaims(claims: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(claims).map(([name, values]) => [
      name,
      Array.isArray(values) && values.length === 1 ? values[0] : values,
    ]),
  );
}
