// Certificates of clients and their authorities for tests, right or wrong in whatever way is asked for.
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { ApiRequest } from '../../src/http/request.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const day = 86_400_000;

interface Wanted {
  readonly subject?: string;
  readonly names?: readonly { readonly type: 'dns' | 'email' | 'url'; readonly value: string }[];
  readonly serial?: string;
  readonly notBefore?: number;
  readonly notAfter?: number;
  readonly isAuthority?: boolean;
  readonly pathLength?: number;
  readonly usage?: number;
  readonly purposes?: readonly string[];
  readonly keys?: CryptoKeyPair;
  readonly extensions?: readonly x509.Extension[];
  /** Algorithm of the signature, for keys that are not P-256. */
  readonly signing?: { readonly name: string; readonly hash: string };
}

/** A certificate with its key, which may sign others. */
export class TestCertificate {
  readonly #certificate: x509.X509Certificate;
  readonly #above: readonly TestCertificate[];
  readonly #now: number;
  readonly keys: CryptoKeyPair;

  private constructor(
    certificate: x509.X509Certificate,
    keys: CryptoKeyPair,
    above: readonly TestCertificate[],
    now: number,
  ) {
    this.#certificate = certificate;
    this.keys = keys;
    this.#above = above;
    this.#now = now;
  }

  /** One that signs itself. */
  static async alone(now: number, wanted: Wanted = {}): Promise<TestCertificate> {
    return TestCertificate.#make(now, wanted, undefined);
  }

  static async authority(now: number, subject = 'CN=ca', wanted: Wanted = {}): Promise<TestCertificate> {
    return TestCertificate.#make(now, { isAuthority: true, subject, ...wanted }, undefined);
  }

  /** One that somebody else made; its private key is not here. */
  static async read(pem: string, now: number): Promise<TestCertificate> {
    const certificate = new x509.X509Certificate(pem);
    const own = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    return new TestCertificate(certificate, { ...own, publicKey: await certificate.publicKey.export() }, [], now);
  }

  /** Signs another. */
  signs(wanted: Wanted = {}): Promise<TestCertificate> {
    return TestCertificate.#make(this.#now, wanted, this);
  }

  static async #make(now: number, wanted: Wanted, issuer: TestCertificate | undefined): Promise<TestCertificate> {
    const keys = wanted.keys ?? (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']));
    const { isAuthority = false, names = [], usage, purposes, subject = 'CN=program', extensions = [] } = wanted;
    const made = await x509.X509CertificateGenerator.create({
      serialNumber: wanted.serial ?? `01${randomBytes(15).toString('hex')}`,
      subject,
      issuer: issuer ? issuer.#certificate.subjectName : subject,
      notBefore: new Date(wanted.notBefore ?? now - day),
      notAfter: new Date(wanted.notAfter ?? now + 30 * day),
      signingAlgorithm: wanted.signing ?? algorithm,
      publicKey: keys.publicKey,
      signingKey: (issuer?.keys ?? keys).privateKey,
      extensions: [
        new x509.BasicConstraintsExtension(isAuthority, wanted.pathLength, true),
        ...(usage === undefined ? [] : [new x509.KeyUsagesExtension(usage, true)]),
        ...(purposes ? [new x509.ExtendedKeyUsageExtension([...purposes])] : []),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension([...names])] : []),
        ...extensions,
      ],
    });
    return new TestCertificate(made, keys, issuer ? [issuer, ...issuer.#above] : [], now);
  }

  get der(): Uint8Array {
    return new Uint8Array(this.#certificate.rawData);
  }

  get pem(): string {
    return `${this.#certificate.toString('pem')}\n`;
  }

  /** With those that signed it, as a client sends them. */
  get chainPem(): string {
    return [this, ...this.#above].map(({ pem }) => pem).join('');
  }

  async keyPem(): Promise<string> {
    const pkcs8 = await crypto.subtle.exportKey('pkcs8', this.keys.privateKey);
    return `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`;
  }

  /** The part of a request that has it. */
  get shown(): { readonly certificate: NonNullable<ApiRequest['certificate']> } {
    return { certificate: { leaf: this.der, chain: this.#above.map(({ der }) => der) } };
  }
}

export const uri = (value: string) => ({ type: 'url', value }) as const;
export const dns = (value: string) => ({ type: 'dns', value }) as const;
export const email = (value: string) => ({ type: 'email', value }) as const;
