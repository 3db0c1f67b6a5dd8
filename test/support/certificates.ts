// An authority of a test's own, and certificates that it signs.
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

interface Wanted {
  /** Names of a server, or of whoever shows it. */
  readonly names: readonly string[];
  readonly notAfter?: Date;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const day = 24 * 60 * 60 * 1000;
const keyPair = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
const serial = (): string => `01${randomBytes(15).toString('hex')}`;

async function pem(cert: x509.X509Certificate, key: CryptoKey): Promise<PemPair> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', key);
  return { cert: `${cert.toString('pem')}\n`, key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n` };
}

export async function authority(name: string) {
  const keys = await keyPair();
  const issuer = `CN=${name}`;
  const from = new Date(Date.now() - 400 * day);
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: issuer,
    notBefore: from,
    notAfter: new Date(Date.now() + 400 * day),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    cert: (await pem(root, keys.privateKey)).cert,
    async sign({ names, notAfter = new Date(Date.now() + 400 * day) }: Wanted): Promise<PemPair> {
      const own = await keyPair();
      const [first = ''] = names;
      const alternatives = names.map((value) => ({ type: /^[\d.]+$/.test(value) ? 'ip' : 'dns', value }) as const);
      const signed = await x509.X509CertificateGenerator.create({
        serialNumber: serial(),
        subject: `CN=${first}`,
        issuer,
        notBefore: from,
        notAfter,
        signingAlgorithm: algorithm,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        extensions: [
          new x509.SubjectAlternativeNameExtension(alternatives),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
        ],
      });
      return pem(signed, own.privateKey);
    },
  };
}
