// Making proofs by client certificates: of one that is given and pinned, of those that an authority signs for a certain
// name, and of one that the appliance issues.
import type { Answer, Body } from '../../api/endpoints.ts';
import { equalBytes, toHex } from '../../crypto/bytes.ts';
import { type Certificate, isSignedBy, isWeakKey } from '../../crypto/certificates.ts';
import { sha256 } from '../../crypto/hash.ts';
import { toPem } from '../../crypto/pem.ts';
import { invalidField, KmsError } from '../../errors.ts';
import type { ResourceRef } from '../../model/activity-details.ts';
import { timestamp } from '../../model/timestamp.ts';
import type { Context } from '../context.ts';
import { issueCertificate } from './client-authority.ts';
import {
  type CertificateTrust,
  certificatesOf,
  certificateTrust,
  fingerprintOfProof,
  issuerProblem,
  keyHashOf,
  sanText,
  spiffeId,
  starredSubject,
} from './client-certificates.ts';

type CertificateInput = Pick<Body<'addProof'>, 'certificate' | 'ca' | 'san' | 'issue' | 'days'>;
type Told = Pick<Answer<'addProof'>, 'certificate' | 'privateKey' | 'caCertificate'>;

interface CertificateDraft {
  readonly subject: string;
  readonly settings: CertificateTrust & { readonly fingerprint?: string };
  readonly told: Told;
  /** Further objects that were made. */
  readonly made: readonly ResourceRef[];
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
  if (certificate !== undefined) return pinned(ctx, certificate);
  if (ca === undefined) throw invalidField('ca', 'is required: the authority that signs the certificates');
  if (san === undefined) throw invalidField('san', 'is required: the name that the certificates have');
  return byIssuer(ctx, ca, san);
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
function pinned({ tx, world }: Context, text: string): CertificateDraft {
  const [certificate] = readPem('certificate', text);
  needUsable('certificate', certificate, world.now());
  const subject = keyHashOf(certificate);
  if (tx.proofs.bySubject('certificate', subject)) {
    throw new KmsError('conflict', 'a proof has the key of this certificate already: a program needs a key of its own');
  }
  return { subject, settings: { notAfter: certificate.notAfter }, told: {}, made: [] };
}

function byIssuer({ tx, world }: Context, text: string, given: string): CertificateDraft {
  const [authority, ...others] = readPem('ca', text);
  if (others.length > 0) throw invalidField('ca', 'expected one certificate: add a proof for each authority');
  const problem = issuerProblem(authority, 0);
  if (problem !== undefined) throw invalidField('ca', `cannot sign client certificates: ${problem}`);
  needUsable('ca', authority, world.now());
  const { subject: name, issuer, spki, notAfter } = authority;
  if (equalBytes(name, issuer) && !isSignedBy(authority, authority)) {
    throw invalidField('ca', 'its signature is wrong, or of an algorithm that does not count');
  }
  const { san, subject } = checkedName(given);
  const fingerprint = toHex(sha256(spki));
  const same = tx.proofs.byCertificateName(subject, mostOfName);
  if (same.some((proof) => fingerprintOfProof(proof) === fingerprint && certificateTrust(proof).san === san)) {
    throw new KmsError('conflict', 'a proof has this authority and name already');
  }
  if (same.length >= mostOfName) throw new KmsError('quota', `at most ${mostOfName} proofs have one name`);
  return {
    subject,
    settings: { ca: toPem('CERTIFICATE', authority.der), san, notAfter, fingerprint },
    told: {},
    made: [],
  };
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
  if (isWeakKey(spki)) throw invalidField(field, 'its key is too weak, or of a kind that TLS does not use');
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
