// Client certificates as proofs of an API key. A certificate is pinned by its public key, or trusted if an authority of
// the proof signed it and it has a certain name. TLS has shown that the client holds the key; all else is decided here,
// for each request, and for each tenant by its own authorities.
import { equalBytes, fromBase64, fromBase64Url, toBase64Url, toHex } from '../../crypto/bytes.ts';
import {
  type Certificate,
  clientAuth,
  hasKnownSignature,
  isSignedBy,
  isWeakKey,
  keyUsages,
  nameText,
  readCertificate,
  weakKey,
} from '../../crypto/certificates.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import { pemBlocks, toPem } from '../../crypto/pem.ts';
import { fitsGlob } from '../../model/trust.ts';
import type { Tables } from '../../store/port.ts';
import type { KnownProof } from '../../store/tables/proofs.ts';

/** A client's certificate in the TLS handshake, and others that it sent with it: one object for each connection. */
export interface PresentedCertificate {
  /** DER. */
  readonly leaf: Uint8Array;
  readonly chain: readonly Uint8Array[];
}

/** Settings of a proof, as stored. */
export interface CertificateTrust {
  /** PEM of the authority; absent: the certificate is pinned. */
  readonly ca?: string;
  /** The name that certificates must have: its kind, a colon and the name. */
  readonly san?: string;
  /**
   * End of the certificate, or of the authority's, in epoch milliseconds. The end of a pinned one that is not `issued`
   * is only shown: its holder can make other certificates of the key, with dates of their own.
   */
  readonly notAfter: number;
  /** The appliance issued the certificate: the proof ends at `notAfter`, whatever certificate is presented. */
  readonly issued?: true;
  /** SHA-256 of the authority's public key in hex; absent for a pinned certificate. */
  readonly fingerprint?: string;
}

/** Certificates from a leaf to its authority, both counted. */
const longestChain = 5;
/** Further certificates of a client that are looked at: no chain needs more, and each may cost several signatures. */
const mostPresented = 4;
/** Names in a certificate, by each of which proofs are looked up. */
const mostNames = 20;
const longestShownName = 200;
/** Proofs of one name. */
const mostCandidates = 20;

/** The time in which all of a chain is valid; or why there is none. */
type Chain = { readonly from: number; readonly to: number } | { readonly problem: string };

interface Known {
  readonly certificate: Certificate;
  readonly keyHash: string;
  /** The API key that an appliance issued it for: it proves no other one, in no tenant. */
  readonly issuedFor: string | undefined;
  /** By the PEM of the authority: it is a part of the result, so that no tenant gets that of another. */
  readonly chains: Map<string, Chain>;
}

/** Each connection's certificate is read once; undefined for a malformed one. */
const known = new WeakMap<PresentedCertificate, Known | { readonly certificate?: undefined }>();

function read(presented: PresentedCertificate): Known | undefined {
  let found = known.get(presented);
  if (!found) {
    try {
      const certificate = readCertificate(presented.leaf);
      found = { certificate, keyHash: keyHashOf(certificate), issuedFor: issuedFor(certificate), chains: new Map() };
    } catch {
      found = {};
    }
    known.set(presented, found);
  }
  return found.certificate && found;
}

/** SHA-256 of the public key, in base64url. */
export function keyHashOf({ spki }: Pick<Certificate, 'spki'>): string {
  return toBase64Url(sha256(spki));
}

/** The same of a client's certificate; undefined if it has none, or a malformed one. */
export function presentedKey(presented: PresentedCertificate | undefined): string | undefined {
  return presented && read(presented)?.keyHash;
}

/** The contents of a client's certificate; undefined for a malformed one. */
export function presentedCertificate(presented: PresentedCertificate): Certificate | undefined {
  return read(presented)?.certificate;
}

/** The common name of a tenant's authority, by which certificates that it issued are told from all others. */
export function authorityName(tenant: string, { name, version }: { readonly name: string; readonly version: number }) {
  return `kms ${tenant.slice(0, 32)} ${name.slice(0, 20)} v${version}`;
}

/**
 * The API key for which an appliance issued the certificate, by its own word: no signature is looked at, so this can
 * only take from what it proves. Hence it holds for tenants that are deleted, too. Undefined for other certificates.
 */
export function issuedFor({ issuer, commonName }: Pick<Certificate, 'issuer' | 'commonName'>): string | undefined {
  if (!/^apik_[0-9a-z]{26}$/.test(commonName)) return undefined;
  try {
    return /^CN=kms .* v\d+$/s.test(nameText(issuer)) ? commonName : undefined;
  } catch {
    return undefined;
  }
}

/** A proof that a client's certificate is good for. */
export interface ProvenCertificate {
  readonly proof: KnownProof;
  /** The name that was trusted, or the fingerprint of the pinned key. */
  readonly subject: string;
  readonly from: number;
  readonly to: number;
}

/** Whether the proof holds at this time. */
export function holdsNow({ proof, from, to }: ProvenCertificate, now: number): boolean {
  // The last second counts in whole.
  return proof.active && from <= now && now < to + 1000;
}

/** Why a client's certificate can be no proof, whatever proofs there are: the end of a sentence about it. */
export function presentedProblem(presented: PresentedCertificate): string | undefined {
  const found = read(presented);
  if (!found) return 'it is malformed';
  return found.certificate.names.length > mostNames ? `it has more than ${mostNames} names` : undefined;
}

/**
 * The proof that a client's certificate is: of all that it fits, the oldest, which may be switched off or out of its
 * time. Hence no proof that somebody adds takes a program from its API key, and one that is switched off refuses.
 */
export function provenBy(
  { proofs }: Pick<Tables, 'proofs'>,
  presented: PresentedCertificate | undefined,
): ProvenCertificate | undefined {
  const found = presented && read(presented);
  if (!found || !presented || presentedProblem(presented) !== undefined) return undefined;
  const pinned = proofs.bySubject('certificate', found.keyHash);
  const subjects = proofs.hasCertificateNames() ? lookups(found.certificate) : [];
  const named = subjects.flatMap((subject) => proofs.byCertificateName(subject, mostCandidates));
  for (const proof of [...(pinned ? [pinned] : []), ...named].sort((a, b) => a.seq - b.seq)) {
    const fit = fitOf(proof, presented);
    if (fit) return fit;
  }
  return undefined;
}

/** Subjects of proofs that may be for a certificate with these names. */
function lookups({ names }: Certificate): string[] {
  const exact = names.map(({ kind, value }) => `san ${sanText(kind, value)}`);
  const starred = names.flatMap(({ kind, value }) => {
    const id = kind === 'uri' ? spiffeId(value) : undefined;
    return id ? [starredSubject(id.domain)] : [];
  });
  return [...new Set([...exact, ...starred])];
}

/** How the certificate fits the proof; undefined if it does not. Dates and the proof's state are not looked at. */
export function fitOf(proof: KnownProof, presented: PresentedCertificate): ProvenCertificate | undefined {
  const fit = compare(proof, presented);
  return 'problem' in fit ? undefined : fit;
}

/** Authorities that a stranger's certificate is compared with. */
const mostAuthorities = 50;

/** Whether an authority of the tenant signed the certificate, be it a proof of something or not. */
export function isOfKnownAuthority(
  { proofs, clientAuthorities }: Pick<Tables, 'proofs' | 'clientAuthorities'>,
  presented: PresentedCertificate,
  now: number,
): boolean {
  const found = read(presented);
  if (!found) return false;
  const own = clientAuthorities.newest();
  const der = own && fromBase64(own.certificate);
  const authorities = [...(der ? [toPem('CERTIFICATE', der)] : []), ...proofs.authorities(mostAuthorities)];
  return authorities.some((pem) => {
    const chain = chainTo(found.certificate, presented.chain, pem);
    return !('problem' in chain) && chain.from <= now && now < chain.to + 1000;
  });
}

/** A certificate's misfit: with the key or its authority, or with its name or what it may be used for. */
interface CertificateMisfit {
  readonly problem: 'authority' | 'name';
  /** The end of a sentence about the certificate. */
  readonly reason: string;
}

/** The same, or what does not fit. */
export function compare(proof: KnownProof, presented: PresentedCertificate): ProvenCertificate | CertificateMisfit {
  const found = read(presented);
  if (!found || proof.kind !== 'certificate') return { problem: 'authority', reason: 'it is malformed' };
  const { certificate, keyHash, chains } = found;
  if (found.issuedFor !== undefined && found.issuedFor !== proof.apikeyId) {
    return { problem: 'authority', reason: 'it was issued for another API key' };
  }
  const { ca, san, issued = false, notAfter } = certificateTrust(proof);
  if (ca === undefined || san === undefined) {
    if (proof.subject !== keyHash) return { problem: 'authority', reason: 'its key is not the pinned one' };
    const { notBefore: from } = certificate;
    const to = issued ? Math.min(certificate.notAfter, notAfter) : certificate.notAfter;
    return { proof, subject: fingerprintOf(keyHash), from, to };
  }
  const name = nameIn(certificate, san);
  let chain = chains.get(ca);
  if (!chain) {
    chain = chainTo(certificate, presented.chain, ca);
    chains.set(ca, chain);
  }
  if ('problem' in chain) return { problem: 'authority', reason: chain.problem };
  if ('reason' in name) return { problem: 'name', reason: name.reason };
  return { proof, subject: name.subject, from: chain.from, to: chain.to };
}

/** How a certificate proof is stored. */
export function certificateTrust({ settings }: Pick<KnownProof, 'settings'>): CertificateTrust {
  // Cast: the column holds what was written into it when the proof was added.
  return settings as unknown as CertificateTrust;
}

/** The hash of a public key as people compare it: hex. */
function fingerprintOf(keyHash: string): string {
  return toHex(fromBase64Url(keyHash) ?? new Uint8Array());
}

/** A name of a certificate as text. Names of hosts have no case. */
export function sanText(kind: string, value: string): string {
  return `${kind}:${kind === 'dns' ? value.toLowerCase() : value}`;
}

/** The subject of proofs of SPIFFE IDs with a star, by which they are found. */
export function starredSubject(domain: string): string {
  return `san spiffe ${domain}`;
}

/** The parts of a SPIFFE ID, of which segments may have stars if wanted; undefined for another or malformed URI. */
export function spiffeId(uri: string, segment = /^[A-Za-z0-9._-]+$/): { readonly domain: string } | undefined {
  if (uri.length > 2048) return undefined;
  const [, domain, path] = /^spiffe:\/\/([a-z0-9._-]{1,255})\/(.+)$/.exec(uri) ?? [];
  if (domain === undefined || path === undefined) return undefined;
  return path.split('/').every((each) => segment.test(each) && each !== '.' && each !== '..') ? { domain } : undefined;
}

/** The name of the certificate that the trust means, or why it has none. */
function nameIn(
  { names, keyUsage = 0 }: Certificate,
  san: string,
): { readonly subject: string } | { readonly reason: string } {
  if (!san.startsWith('uri:spiffe://')) {
    const found = names.find(({ kind, value }) => sanText(kind, value) === san);
    return found ? { subject: found.value } : { reason: `it does not have the name ${san}` };
  }
  // An X.509-SVID has exactly one URI, and signs neither certificates nor lists of revoked ones.
  const [only, ...others] = names.filter(({ kind }) => kind === 'uri');
  const isIt = only !== undefined && spiffeId(only.value) && fitsGlob(san.slice('uri:'.length), only.value);
  if (!isIt || others.length > 0) return { reason: `it does not have ${san} as its only URI` };
  if ((keyUsage & keyUsages.crlSign) !== 0) return { reason: 'its key signs lists of revoked certificates' };
  return { subject: only.value };
}

/** Why a leaf may not log in whatever signed it; undefined if it may. */
function leafProblem({ isAuthority, keyUsage, purposes, isRestricted, spki }: Certificate): string | undefined {
  if (isWeakKey(spki)) return weakKey;
  if (isAuthority) return 'it is an authority';
  if (isRestricted) return 'it has restrictions that are not understood';
  if (purposes && !purposes.includes(clientAuth)) return 'it is not for clients';
  if (keyUsage === undefined) return undefined;
  if ((keyUsage & keyUsages.keyCertSign) !== 0) return 'its key signs certificates';
  return (keyUsage & keyUsages.digitalSignature) === 0 ? 'its key does not sign' : undefined;
}

/** Why this cannot be the issuer of what is below it; undefined if it can. `between` are authorities below it. */
export function issuerProblem(issuer: Certificate, between: number): string | undefined {
  const { isAuthority, keyUsage, pathLength, purposes, isRestricted, spki } = issuer;
  if (isWeakKey(spki)) return weakKey;
  if (!isAuthority) return 'it is no authority: basicConstraints say CA:FALSE, or nothing';
  if (keyUsage !== undefined && (keyUsage & keyUsages.keyCertSign) === 0) return 'its key does not sign certificates';
  if (isRestricted) return 'it has restrictions that are not understood, such as constraints on names';
  if (purposes && !purposes.includes(clientAuth)) return 'it is not for clients';
  return pathLength !== undefined && between > pathLength ? 'its chain is too long' : undefined;
}

function chainTo(leaf: Certificate, sent: readonly Uint8Array[], pem: string): Chain {
  const problem = leafProblem(leaf);
  if (problem !== undefined) return { problem };
  const [authority, ...more] = certificatesOf(pem);
  if (!authority || more.length > 0) return { problem: 'the authority is no certificate' };
  const others = sent.slice(0, mostPresented).flatMap((each) => {
    try {
      return [readCertificate(each)];
    } catch {
      return [];
    }
  });
  const obstacles: string[] = [];
  const path = pathFrom([leaf], authority, others, obstacles);
  if (!path) return { problem: ['no chain leads to the authority', ...obstacles.slice(0, 1)].join(': ') };
  return {
    from: Math.max(...path.map(({ notBefore }) => notBefore)),
    to: Math.min(...path.map(({ notAfter }) => notAfter)),
  };
}

/**
 * Continues a path, which begins with the leaf, to the authority; undefined if there is none. What stands in the way is
 * added to `obstacles`.
 */
function pathFrom(
  path: readonly Certificate[],
  authority: Certificate,
  others: readonly Certificate[],
  obstacles: string[],
): readonly Certificate[] | undefined {
  const last = path.at(-1);
  if (!last) return undefined;
  for (const issuer of [authority, ...others]) {
    if (!equalBytes(issuer.subject, last.issuer) || path.some(({ der }) => equalBytes(der, issuer.der))) continue;
    const obstacle = obstacleTo(path, last, issuer);
    if (obstacle !== undefined) {
      obstacles.push(obstacle);
      continue;
    }
    const whole = issuer === authority ? [...path, issuer] : pathFrom([...path, issuer], authority, others, obstacles);
    if (whole) return whole;
  }
  return undefined;
}

/** Why a path cannot go on with an issuer of the right name; undefined if it can. */
function obstacleTo(path: readonly Certificate[], last: Certificate, issuer: Certificate): string | undefined {
  if (path.length >= longestChain) return `it would have more than ${longestChain} certificates`;
  const name = shownName(issuer);
  const problem = issuerProblem(issuer, path.length - 1);
  if (problem !== undefined) return `${name} cannot be in it: ${problem}`;
  if (isSignedBy(last, issuer)) return undefined;
  return hasKnownSignature(last) ? `the signature by ${name} is wrong` : `the signature by ${name} does not count`;
}

/** The name of a client's issuer, which may be anything. */
function shownName({ subject }: Certificate): string {
  try {
    return nameText(subject).slice(0, longestShownName).toWellFormed();
  } catch {
    return 'an issuer';
  }
}

/** The certificates in PEM. Throws `invalid` for a malformed one. */
export function certificatesOf(pem: string): Certificate[] {
  return pemBlocks(pem, 'CERTIFICATE').map((block) => readCertificate(block ?? new Uint8Array()));
}

/** In hex: of the pinned key, or of the authority's. */
export function fingerprintOfProof(proof: Pick<KnownProof, 'subject' | 'settings'>): string {
  return certificateTrust(proof).fingerprint ?? fingerprintOf(proof.subject ?? '');
}

/** The name of a proof's authority for people; undefined for a pinned certificate. */
export function authorityOfProof(proof: Pick<KnownProof, 'settings'>): string | undefined {
  const { ca } = certificateTrust(proof);
  const [authority] = ca === undefined ? [] : certificatesOf(ca);
  return authority && nameText(authority.subject);
}
