// Making proofs by client certificates: of one that is given and pinned, of those that an authority signs for a certain
// name, and of one that the appliance issues.
import type { Answer, Body } from '../../api/endpoints.ts';
import { equalBytes, toHex } from '../../crypto/bytes.ts';
import {
  type Certificate,
  hasKnownSignature,
  isSignedBy,
  isSigner,
  isWeakKey,
  weakKey,
} from '../../crypto/certificates.ts';
import { sha256 } from '../../crypto/hash.ts';
import { toPem } from '../../crypto/pem.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { ResourceRef } from '../../model/activity-details.ts';
import { timestamp } from '../../model/timestamp.ts';
import { fitsGlob } from '../../model/trust.ts';
import type { Tables } from '../../store/port.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';
import type { Context } from '../context.ts';
import { issueCertificate } from './client-authority.ts';
import {
  type CertificateTrust,
  certificatesOf,
  certificateTrust,
  fingerprintOfProof,
  issuedFor,
  issuerProblem,
  keyHashOf,
  presentedProblem,
  provenBy,
  sanText,
  spiffeId,
  starredSubject,
} from './client-certificates.ts';

type CertificateInput = Pick<Body<'addProof'>, 'certificate' | 'ca' | 'san' | 'issue' | 'days'>;
type Told = Pick<Answer<'addProof'>, 'certificate' | 'privateKey' | 'caCertificate'>;

interface CertificateDraft {
  readonly subject: string;
  readonly settings: CertificateTrust;
  /** The proof of the same API key that gets these settings, instead of a new one: a certificate was renewed. */
  readonly renews?: KnownProof;
  readonly told?: Told;
  /** Further objects that were made. */
  readonly made?: readonly ResourceRef[];
}

const usualDays = 90;
const longestPem = 65_536;
const longestName = 2048;
const mostStars = 8;
/** Proofs of one name: as many as a request is compared with. */
const mostOfName = 20;

/** Throws `invalid` for a certificate or name that would prove nothing, and `conflict` if another proof has it. */
export function draftCertificate(ctx: Context, apikeyId: string, input: CertificateInput): CertificateDraft {
  const { certificate, ca, san, issue = false, days } = input;
  if (days !== undefined && !issue) throw invalidField('days', 'is only for a certificate that is issued here');
  const ways = [certificate !== undefined, ca !== undefined || san !== undefined, issue].filter(Boolean).length;
  if (ways !== 1) throw invalidField('certificate', 'expected one of certificate, ca with san, and issue');
  if (issue) return issued(ctx, apikeyId, days ?? usualDays);
  if (certificate !== undefined) return pinned(ctx, apikeyId, certificate);
  if (ca === undefined) throw invalidField('ca', 'is required: the authority that signs the certificates');
  if (san === undefined) throw invalidField('san', 'is required: the name that the certificates have');
  return byIssuer(ctx, apikeyId, ca, san);
}

function issued(ctx: Context, apikeyId: string, days: number): CertificateDraft {
  const { certificate, privateKey, caCertificate, keyHash, notAfter, made } = issueCertificate(ctx, apikeyId, days);
  return {
    subject: keyHash,
    settings: { notAfter, issued: true },
    told: { certificate, privateKey, caCertificate },
    made,
  };
}

/** A chain begins with the program's certificate. */
function pinned(ctx: Context, apikeyId: string, text: string): CertificateDraft {
  const { tx, world } = ctx;
  const [certificate, ...others] = readPem('certificate', text);
  needUsable('certificate', certificate, world.now());
  const owner = issuedFor(certificate);
  if (owner !== undefined && owner !== apikeyId) throw issuedElsewhere(owner);
  const presented = { leaf: certificate.der, chain: others.map(({ der }) => der) };
  const problem = presentedProblem(presented);
  if (problem !== undefined) throw invalidField('certificate', `can be no proof: ${problem}`);
  const subject = keyHashOf(certificate);
  const { notAfter } = certificate;
  const same = tx.proofs.bySubject('certificate', subject);
  if (same) return renewal(ctx, apikeyId, same, { notAfter });
  const fit = provenBy(tx, presented);
  if (fit && fit.proof.apikeyId !== apikeyId) throw taken(ctx, fit.proof);
  return { subject, settings: { notAfter } };
}

/** Throws `conflict` if the proof is of another API key, or its certificate ends no earlier. */
function renewal(
  ctx: Context,
  apikeyId: string,
  proof: KnownProof,
  renewed: Pick<CertificateTrust, 'notAfter' | 'ca'>,
): CertificateDraft {
  if (proof.apikeyId !== apikeyId) throw taken(ctx, proof);
  const before = certificateTrust(proof);
  if (before.issued) {
    throw new KmsError(
      'conflict',
      `its key is that of a certificate issued here, the proof ${proof.id}: issue another`,
    );
  }
  if (renewed.notAfter <= before.notAfter) {
    const until = timestamp(before.notAfter);
    throw new KmsError('conflict', `the proof ${proof.id} is for the same already, until ${until}: nothing is renewed`);
  }
  return { subject: proof.subject ?? '', settings: { ...before, ...renewed }, renews: proof };
}

/** The refusal of what is a proof of another API key, which is named to those who may read it. */
function taken({ caller }: Pick<Context, 'caller'>, { apikeyId }: KnownProof): KmsError {
  const other = caller.flags.covers('apikey.read') ? `the API key ${apikeyId}` : 'another API key';
  return new KmsError('conflict', `it is a proof of ${other} already: a program is one API key`);
}

/** The refusal of a certificate that an appliance issued. Its holder knows the API key's id, which is in it. */
function issuedElsewhere(owner: string): KmsError {
  const message = `an appliance issued it for the API key ${owner}, and it proves that one alone`;
  return new KmsError('conflict', `${message}: have a certificate issued for this API key`);
}

/** The refusal of a name whose certificates are all an older proof of another API key: this one would never count. */
function covered({ caller }: Pick<Context, 'caller'>, older: KnownProof): KmsError {
  const whose = caller.flags.covers('apikey.read')
    ? `the proof ${older.id} (${certificateTrust(older).san}) of the API key ${older.apikeyId}`
    : 'an older proof of another API key';
  return new KmsError('conflict', `certificates of that name are ${whose} already: a program is one API key`);
}

function byIssuer(ctx: Context, apikeyId: string, text: string, given: string): CertificateDraft {
  const { tx, world } = ctx;
  const [authority, ...others] = readPem('ca', text);
  if (others.length > 0) throw invalidField('ca', 'expected one certificate: add a proof for each authority');
  const problem = issuerProblem(authority, 0);
  if (problem !== undefined) throw invalidField('ca', `cannot sign client certificates: ${problem}`);
  needUsable('ca', authority, world.now());
  needSigner(authority);
  const { spki, notAfter } = authority;
  const { san, subject } = checkedName(given);
  const fingerprint = toHex(sha256(spki));
  const ca = toPem('CERTIFICATE', authority.der);
  const named = tx.proofs.byCertificateName(subject, mostOfName);
  const same = named.find((proof) => certificateTrust(proof).san === san && isOfAuthority(proof, authority));
  if (same) return renewal(ctx, apikeyId, same, { ca, notAfter });
  const older = coveringProof(tx, san, authority);
  if (older && older.apikeyId !== apikeyId) throw covered(ctx, older);
  if (named.length >= mostOfName) throw new KmsError('quota', `at most ${mostOfName} proofs have one name`);
  return { subject, settings: { ca, san, notAfter, fingerprint } };
}

/**
 * The oldest proof by this authority that all certificates of a name fit. A star in the name stands for less than one
 * in the proof, which takes it for a character like others.
 */
function coveringProof(
  { proofs }: Pick<Tables, 'proofs'>,
  san: string,
  authority: Certificate,
): KnownProof | undefined {
  const [, value = '', domain] = /^uri:(spiffe:\/\/([^/]+)\/.+)$/.exec(san) ?? [];
  if (domain === undefined) return undefined;
  const starred = proofs.byCertificateName(starredSubject(domain), mostOfName);
  return starred.find((proof) => {
    const { san: pattern = '' } = certificateTrust(proof);
    return fitsGlob(pattern.slice('uri:'.length), value) && isOfAuthority(proof, authority);
  });
}

/**
 * Whether a tenant has a proof of all the certificates that are meant: of the one that is pinned, or of the name by the
 * authority. Proofs by single certificates of that name cannot be told.
 */
export function isCovered(tables: Pick<Tables, 'proofs'>, { certificate, ca, san: given }: CertificateInput): boolean {
  if (certificate !== undefined) {
    const [leaf, ...others] = readPem('certificate', certificate);
    return provenBy(tables, { leaf: leaf.der, chain: others.map(({ der }) => der) }) !== undefined;
  }
  if (ca === undefined || given === undefined) return false;
  const [authority] = readPem('ca', ca);
  const { san, subject } = checkedName(given);
  const named = tables.proofs.byCertificateName(subject, mostOfName);
  const isSame = (proof: KnownProof): boolean => certificateTrust(proof).san === san && isOfAuthority(proof, authority);
  return named.some(isSame) || coveringProof(tables, san, authority) !== undefined;
}

/** Whether the proof trusts this authority: the same key by the same name, whatever its dates. */
function isOfAuthority(proof: KnownProof, { spki, subject }: Certificate): boolean {
  const { ca = '' } = certificateTrust(proof);
  const [own] = fingerprintOfProof(proof) === toHex(sha256(spki)) ? certificatesOf(ca) : [];
  return own !== undefined && equalBytes(own.subject, subject);
}

/** Throws `invalid` for an authority whose signatures never count, and for one that did not sign itself as it says. */
function needSigner(authority: Certificate): void {
  if (!isSigner(authority)) {
    const counted = 'RSA of 2048, 3072 or 4096 bits, P-256, P-384, P-521 and Ed25519';
    throw invalidField('ca', `signatures of its key do not count: those of ${counted} do`);
  }
  if (!equalBytes(authority.subject, authority.issuer)) return;
  if (!hasKnownSignature(authority)) {
    throw invalidField('ca', 'its signature does not count: RSA (PKCS #1 v1.5) or ECDSA with SHA-2, and Ed25519 do');
  }
  if (!isSignedBy(authority, authority)) throw invalidField('ca', 'its signature is wrong');
}

function readPem(field: string, text: string): readonly [Certificate, ...Certificate[]] {
  if (text.length > longestPem) throw invalidField(field, `expected at most ${longestPem} characters`);
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) {
    throw invalidField(
      field,
      'has a private key in it: leave that with the program, and replace it, as it was sent here',
    );
  }
  let found: Certificate[];
  try {
    found = certificatesOf(text);
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    throw invalidField(field, error.message);
  }
  const [first, ...others] = found;
  if (!first) throw invalidField(field, 'expected a certificate in PEM');
  return [first, ...others];
}

function needUsable(field: string, { spki, notAfter }: Certificate, now: number): void {
  if (notAfter + 1000 <= now) throw invalidField(field, `expired at ${timestamp(notAfter)}`);
  if (isWeakKey(spki)) throw invalidField(field, weakKey);
}

const hostName = /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;

/** The name in its form, and what proofs of it are found by. */
function checkedName(given: string): { readonly san: string; readonly subject: string } {
  const text = given.startsWith('spiffe://') ? `uri:${given}` : given;
  const [, kind = '', value = ''] = /^(dns|email|uri):([\x21-\x7e]+)$/.exec(text) ?? [];
  if (kind === '' || value.length > longestName) {
    throw invalidField('san', 'expected dns:NAME, email:ADDRESS, uri:URI or spiffe://DOMAIN/PATH');
  }
  const san = sanText(kind, value);
  if (kind === 'uri' && /^spiffe:/i.test(value)) return checkedSpiffe(san, value);
  if (value.includes('*')) throw invalidField('san', 'a star stands only in the path of a SPIFFE ID');
  const isRight =
    kind === 'dns'
      ? hostName.test(san.slice('dns:'.length)) && value.length <= 253
      : kind === 'email'
        ? /^[^@]+@[^@]+$/.test(value)
        : /^[a-z][a-z0-9+.-]*:./i.test(value);
  if (!isRight) throw invalidField('san', `expected a name of the kind ${kind}`);
  return { san, subject: `san ${san}` };
}

function checkedSpiffe(san: string, value: string): { readonly san: string; readonly subject: string } {
  const id = spiffeId(value, /^[A-Za-z0-9._*-]+$/);
  const stars = value.split('*').length - 1;
  if (!id || value.includes('**') || stars > mostStars) {
    throw invalidField('san', 'expected a SPIFFE ID with a path, in which a star stands for anything but a slash');
  }
  return { san, subject: stars > 0 ? starredSubject(id.domain) : `san ${san}` };
}
