// Certificate authorities that connections trust: by default the bundled ones and the system's; if a file names some,
// only its readable certificates. It also checks whether a served certificate comes with all that a client needs to
// reach an authority.
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { KmsError } from '../errors.ts';
import { environment } from './environment.ts';

let isSystemTrusted = false;
/** The process's own authorities, before any others were set. */
let own: readonly string[] | undefined;
let withSystem: string[] | undefined;

/**
 * Makes the whole process trust the system's authorities besides the bundled ones. Call it before the first TLS
 * connection that names none: reading them takes a tenth of a second, once.
 */
export function trustSystem(): void {
  if (isSystemTrusted) return;
  own ??= getCACertificates('default');
  withSystem ??= distinct([...own, ...systemAuthorities()]);
  setDefaultCACertificates(withSystem);
  isSystemTrusted = true;
}

/** Makes the whole process trust these authorities, PEM, and no others, until `trustSystem` is called. */
export function trustOnly(pem: string): void {
  own ??= getCACertificates('default');
  setDefaultCACertificates([pem]);
  isSystemTrusted = false;
}

/** OpenSSL's default paths, unless its variables name others. */
const usualDirectory = '/etc/ssl/certs';
const usualFile = '/etc/ssl/cert.pem';

function systemAuthorities(): readonly string[] {
  // If the directory is missing, Node writes that to stderr.
  if (existsSync(environment('SSL_CERT_DIR') ?? usualDirectory)) return getCACertificates('system');
  try {
    return certificatesIn(readFileSync(environment('SSL_CERT_FILE') ?? usualFile, 'utf8')).readable;
  } catch {
    return [];
  }
}

/** A directory of hashed names has each certificate twice, and once more in its bundle. */
function distinct(pems: readonly string[]): string[] {
  return [...new Map(pems.map((pem) => [pem.replace(/\s+/g, ''), pem])).values()];
}

interface Certificates {
  /** Each in PEM. */
  readonly readable: readonly string[];
  /** Such as `number 3 (line 41)`. */
  readonly unreadable: readonly string[];
}

const blocks = /-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[\s\S]*?(?:-----END \1-----|(?=-----BEGIN )|$)/g;

/** OpenSSL silently stops at the first certificate that it cannot read. */
export function certificatesIn(text: string): Certificates {
  const readable: string[] = [];
  const unreadable: string[] = [];
  let line = 1;
  let from = 0;
  for (const [at, match] of [...text.matchAll(blocks)].entries()) {
    line += text.slice(from, match.index).split('\n').length - 1;
    from = match.index;
    try {
      readable.push(new X509Certificate(match[0]).toString());
    } catch {
      unreadable.push(`number ${at + 1} (line ${line})`);
    }
  }
  return { readable, unreadable };
}

/**
 * The certificates of an authorities file, in PEM. Unreadable ones are reported to `warn`. Throws `invalid` if none can
 * be read; `from` names the file.
 */
export function authoritiesIn(text: string, from: string, warn: (message: string) => void = () => {}): string {
  const { readable, unreadable } = certificatesIn(text);
  if (readable.length === 0) {
    throw new KmsError('invalid', `${from} has no certificate in it`, {
      hint: 'give the certificate of the authority that signed the one of the server, PEM',
    });
  }
  const few = unreadable.slice(0, 5).join(', ');
  const more = unreadable.length > 5 ? ` and ${unreadable.length - 5} more` : '';
  if (few !== '') warn(`${from}: certificate ${few}${more} cannot be read and is not trusted; the others are`);
  return readable.join('');
}

export interface MissingIssuer {
  readonly name: string;
  /**
   * Whether the certificate says where to get its issuer's, as those of public authorities do. Otherwise it may be a
   * private authority, which clients are given and no server sends.
   */
  readonly isPublic: boolean;
}

/**
 * The issuer missing between a served certificate and an authority that clients may know; undefined if none is, as for
 * a self-signed certificate.
 */
export function missingIssuer(pem: string): MissingIssuer | undefined {
  const [leaf, ...others] = certificatesIn(pem).readable.map((each) => new X509Certificate(each));
  let last = leaf;
  // Each certificate is used once, so that two which signed each other end the loop.
  while (last && !isSelfSigned(last)) {
    const issued: X509Certificate = last;
    const at = others.findIndex((each) => issued.checkIssued(each));
    if (at < 0) break;
    [last] = others.splice(at, 1);
  }
  if (!last || isSelfSigned(last) || isIssuedByKnown(last)) return undefined;
  return { name: last.issuer.replaceAll('\n', ', '), isPublic: /^CA Issuers/m.test(last.infoAccess ?? '') };
}

/**
 * Compares names, since `checkIssued` also requires an authority's key usage, which certificates made by `kms tls`
 * lack.
 */
function isSelfSigned({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

/** The system's authorities are read only if no bundled one is the issuer. */
function isIssuedByKnown(certificate: X509Certificate): boolean {
  const isIssuer = (pem: string): boolean => certificate.checkIssued(new X509Certificate(pem));
  return getCACertificates('bundled').some(isIssuer) || distinct(systemAuthorities()).some(isIssuer);
}
