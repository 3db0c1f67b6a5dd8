// A test's own certificate authority, and certificates that it signs.
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

interface Wanted {
  /** Names of the server, or of the client. */
  readonly names: readonly string[];
  readonly notAfter?: Date;
  /** URL of the issuer's certificate, as stated in the certificate. */
  readonly issuerUrl?: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const day = 24 * 60 * 60 * 1000;
const keyPair = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
const serial = (): string => `01${randomBytes(15).toString('hex')}`;

async function pem(cert: x509.X509Certificate, key: CryptoKey): Promise<PemPair> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', key);
  return { cert: `${cert.toString('pem')}\n`, key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n` };
}

interface Authority {
  /** PEM. */
  readonly cert: string;
  sign(wanted: Wanted): Promise<PemPair>;
  /** Makes an authority below this one. */
  below(name: string): Promise<Authority>;
}

export async function authority(name: string): Promise<Authority> {
  const keys = await keyPair();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=${name}`,
    ...validity(),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return authorityWith((await pem(root, keys.privateKey)).cert, name, keys);
}

function validity(notAfter = new Date(Date.now() + 400 * day)) {
  return { notBefore: new Date(Date.now() - 400 * day), notAfter };
}

function authorityWith(cert: string, name: string, keys: CryptoKeyPair): Authority {
  const issuer = `CN=${name}`;
  return {
    cert,
    async below(lower) {
      const own = await keyPair();
      const signed = await x509.X509CertificateGenerator.create({
        serialNumber: serial(),
        subject: `CN=${lower}`,
        issuer,
        ...validity(),
        signingAlgorithm: algorithm,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
      });
      return authorityWith((await pem(signed, own.privateKey)).cert, lower, own);
    },
    async sign({ names, notAfter, issuerUrl }) {
      const own = await keyPair();
      const [first = ''] = names;
      const alternatives = names.map((value) => ({ type: /^[\d.]+$/.test(value) ? 'ip' : 'dns', value }) as const);
      const signed = await x509.X509CertificateGenerator.create({
        serialNumber: serial(),
        subject: `CN=${first}`,
        issuer,
        ...validity(notAfter),
        signingAlgorithm: algorithm,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new x509.SubjectAlternativeNameExtension(alternatives),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          ...(issuerUrl === undefined ? [] : [new x509.AuthorityInfoAccessExtension({ caIssuers: issuerUrl })]),
        ],
      });
      return pem(signed, own.privateKey);
    },
  };
}
