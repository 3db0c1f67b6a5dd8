// A self-signed certificate for closed networks, for the given names and addresses; clients trust it because they are
// given it.
import 'reflect-metadata';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { toHex } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';

interface SelfSigned {
  /** In PEM. */
  readonly cert: string;
  readonly key: string;
  /** SHA-256, in the form of browsers and openssl. */
  readonly fingerprint: string;
  readonly notAfter: Date;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const day = 24 * 60 * 60 * 1000;

/** `hosts` are names, perhaps with a leading `*.`, and addresses. Throws `usage` for anything else. */
export async function selfSigned(hosts: readonly string[], days: number, now: Date): Promise<SelfSigned> {
  const names = hosts.map(alternativeName);
  const [first] = hosts;
  if (first === undefined) throw new KmsError('usage', 'a certificate needs a host name or an address');
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  // A day of tolerance for clocks that differ.
  const notBefore = new Date(now.getTime() - day);
  const notAfter = new Date(now.getTime() + days * day);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    // Positive and at most 20 bytes (RFC 5280 §4.1.2.2).
    serialNumber: `01${toHex(systemRandom(15))}`,
    // At most 64 characters; clients check the alternative names.
    name: [{ CN: [first.slice(0, 64)] }],
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      // Lets a client that also trusts an earlier certificate tell which of the two signed.
      await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const digest = new Uint8Array(await cert.getThumbprint('SHA-256'));
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    cert: `${cert.toString('pem')}\n`,
    key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
    fingerprint: (toHex(digest).toUpperCase().match(/../g) ?? []).join(':'),
    notAfter,
  };
}

const label = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/i;

function alternativeName(host: string): { type: 'dns' | 'ip'; value: string } {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) !== 0) return { type: 'ip', value: address };
  const labels = host.replace(/^\*\./, '').split('.');
  if (host.length <= 253 && labels.every((each) => label.test(each))) return { type: 'dns', value: host.toLowerCase() };
  throw new KmsError('usage', `--host: expected a host name or an address, got "${host}"`);
}
