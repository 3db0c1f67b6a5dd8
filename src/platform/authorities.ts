// The certificate authorities that connections trust. Where none are named these are the ones that come with the
// executable and those of the system; where a file names some, they are its certificates alone, as far as they can be
// read. And whether a certificate that is served comes with all that a client needs to reach one of them.
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { KmsError } from '../errors.ts';
import { environment } from './environment.ts';

let isSystemTrusted = false;

/**
 * Has the whole process trust the system's authorities besides those that come with it. Before the first connection
 * with TLS that names none: reading them takes a tenth of a second, once.
 */
export function trustSystem(): void {
  if (isSystemTrusted) return;
  isSystemTrusted = true;
  setDefaultCACertificates(distinct([...getCACertificates('default'), ...systemAuthorities()]));
}

/** OpenSSL's own places, where its variables name no others. */
const usualDirectory = '/etc/ssl/certs';
const usualFile = '/etc/ssl/cert.pem';

function systemAuthorities(): readonly string[] {
  // Node says on stderr that there is no such directory.
  if (existsSync(environment('SSL_CERT_DIR') ?? usualDirectory)) return getCACertificates('system');
  try {
    return certificatesIn(readFileSync(environment('SSL_CERT_FILE') ?? usualFile, 'utf8')).readable;
  } catch {
    return [];
  }
}

/** A directory of hashed names has each certificate twice, and its bundle once more. */
function distinct(pems: readonly string[]): string[] {
  return [...new Map(pems.map((pem) => [pem.replace(/\s+/g, ''), pem])).values()];
}

interface Certificates {
  /** Each in PEM. */
  readonly readable: readonly string[];
  /** `number 3 (line 41)`. */
  readonly unreadable: readonly string[];
}

const blocks = /-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[\s\S]*?(?:-----END \1-----|(?=-----BEGIN )|$)/g;

/** OpenSSL takes a text up to the first certificate that it cannot read, and says nothing. */
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
 * The certificates of a file of authorities, in PEM. What of it cannot be read is told to `warn`. Throws `invalid`
 * where nothing can; `from` names the file.
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
   * Whether the certificate says where that one is to be had, as those of public authorities do. Else it may be an
   * authority of one's own, which clients are given and no server sends.
   */
  readonly isPublic: boolean;
}

/**
 * The issuer that is missing between a served certificate and an authority that clients may know; undefined where none
 * is. A certificate that signed itself needs none.
 */
export function missingIssuer(pem: string): MissingIssuer | undefined {
  const [leaf, ...others] = certificatesIn(pem).readable.map((each) => new X509Certificate(each));
  let last = leaf;
  // Each certificate is used once, so that two that signed each other end it.
  while (last && !isSelfSigned(last)) {
    const issued: X509Certificate = last;
    const at = others.findIndex((each) => issued.checkIssued(each));
    if (at < 0) break;
    [last] = others.splice(at, 1);
  }
  if (!last || isSelfSigned(last) || isIssuedByKnown(last)) return undefined;
  return { name: last.issuer.replaceAll('\n', ', '), isPublic: /^CA Issuers/m.test(last.infoAccess ?? '') };
}

/** By its names: `checkIssued` asks for the usage of an authority too, which one that `kms tls` made does not have. */
function isSelfSigned({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

/** The system's are read only where it is none of those that come with the executable. */
function isIssuedByKnown(certificate: X509Certificate): boolean {
  const isIssuer = (pem: string): boolean => certificate.checkIssued(new X509Certificate(pem));
  return getCACertificates('bundled').some(isIssuer) || distinct(systemAuthorities()).some(isIssuer);
}
