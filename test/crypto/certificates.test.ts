// Certificates: read as OpenSSL and @peculiar/x509 read them, signed as Node verifies them, and nothing but a KmsError
// for bytes that are none.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { afterEach, test } from 'node:test';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import {
  type Certificate,
  certificateToSign,
  commonNameDer,
  isSignedBy,
  isWeakKey,
  nameText,
  newSerial,
  readCertificate,
  signedCertificate,
} from '../../src/crypto/certificates.ts';
import { ecdsaSign, ecPublicKey, newScalar } from '../../src/crypto/managed/ecdsa.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { takeCrypto } from '../../src/platform/native-crypto.ts';

afterEach(() => takeCrypto('noble'));

const extensions = [
  new x509.BasicConstraintsExtension(true, 3, true),
  new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
  new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
  new x509.SubjectAlternativeNameExtension([
    { type: 'dns', value: 'a.example' },
    { type: 'ip', value: '10.0.0.1' },
    { type: 'email', value: 'a@example.org' },
    { type: 'url', value: 'spiffe://a/b' },
    { type: 'dn', value: 'CN=other' },
  ]),
];

const algorithms = {
  'P-256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  'P-521': { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
  Ed25519: { name: 'Ed25519' },
  RSA: { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
};

async function made(
  kind: keyof typeof algorithms,
  more: object = {},
  name = 'O=Example, CN=payroll',
): Promise<x509.X509Certificate> {
  const algorithm = { ...algorithms[kind], ...more };
  // Cast: each of them makes a pair.
  const keys = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as CryptoKeyPair;
  return x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '00ff0102',
    name,
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2051-02-03T04:05:06Z'),
    signingAlgorithm: algorithm,
    keys,
    extensions,
  });
}

test('every field is read as others read it', async () => {
  const theirs = await made('P-256');
  const ours = readCertificate(new Uint8Array(theirs.rawData));
  const node = new X509Certificate(Buffer.from(theirs.rawData));
  assert.equal(ours.commonName, 'payroll');
  assert.equal(ours.notBefore, node.validFromDate.getTime());
  assert.equal(ours.notAfter, node.validToDate.getTime());
  assert.deepEqual(Buffer.from(ours.spki), node.publicKey.export({ type: 'spki', format: 'der' }));
  assert.equal(BigInt(`0x${Buffer.from(ours.serial).toString('hex')}`), BigInt(`0x${node.serialNumber}`));
  assert.deepEqual(ours.names, [
    { kind: 'dns', value: 'a.example' },
    { kind: 'email', value: 'a@example.org' },
    { kind: 'uri', value: 'spiffe://a/b' },
  ]);
  assert.deepEqual([ours.isAuthority, ours.pathLength, ours.keyUsage, ours.isRestricted], [true, 3, 0x84, false]);
  assert.deepEqual(ours.purposes, ['2b06010505070302']);
});

test('signatures count as they do for Node, by noble and by the platform', async () => {
  for (const kind of Object.keys(algorithms) as (keyof typeof algorithms)[]) {
    const one = readCertificate(new Uint8Array((await made(kind)).rawData));
    const other = readCertificate(new Uint8Array((await made(kind)).rawData));
    const altered = readCertificate(one.der.map((byte, at) => (at === one.der.length - 1 ? byte ^ 1 : byte)));
    for (const choice of kind === 'RSA' ? (['node'] as const) : (['node', 'noble'] as const)) {
      takeCrypto(choice);
      assert.equal(isSignedBy(one, one), true, `${kind} ${choice}`);
      for (const wrong of [altered, other]) assert.equal(isSignedBy(wrong, one), false, `${kind} ${choice}`);
    }
  }
  takeCrypto('node');
  const sha1 = readCertificate(new Uint8Array((await made('RSA', { hash: 'SHA-1' })).rawData));
  assert.equal(isSignedBy(sha1, sha1), false, 'SHA-1 does not count');
  const small = readCertificate(new Uint8Array((await made('RSA', { modulusLength: 1024 })).rawData));
  assert.equal(isSignedBy(small, small), false, 'nor do 1024 bits');
  assert.deepEqual([isWeakKey(small.spki), isWeakKey(sha1.spki)], [true, false]);
});

test('keys of clients are of the kinds and sizes that TLS takes', () => {
  const pair = generateKeyPairSync as unknown as (type: string, options?: object) => { publicKey: KeyObject };
  const ec = (namedCurve: string) => ['ec', { namedCurve }] as const;
  const rsa = (type: string, modulusLength: number) => [type, { modulusLength }] as const;
  const mlDsa = ['ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87'].map((type) => [type] as const);
  const good = [rsa('rsa', 2048), rsa('rsa-pss', 2048), ...['P-256', 'P-384', 'P-521'].map(ec), ['ed25519'], ['ed448']];
  const dsa = ['dsa', { modulusLength: 2048, divisorLength: 256 }] as const;
  const curves = ['secp256k1', 'secp224r1', 'prime192v1', 'brainpoolP256r1'].map(ec);
  const weak = [
    rsa('rsa', 512),
    rsa('rsa', 1024),
    rsa('rsa', 2041),
    rsa('rsa', 2047),
    rsa('rsa-pss', 1024),
    ...curves,
    dsa,
    ['x25519'],
  ];
  const spkiOf = ([type, options]: readonly unknown[]): Uint8Array =>
    pair(String(type), options as object).publicKey.export({ type: 'spki', format: 'der' });
  for (const each of [...good, ...mlDsa]) assert.equal(isWeakKey(spkiOf(each)), false, JSON.stringify(each));
  for (const each of weak) assert.equal(isWeakKey(spkiOf(each)), true, JSON.stringify(each));
  const explicit = generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' }).publicKey;
  assert.equal(isWeakKey(explicit.export({ type: 'spki', format: 'der' })), true, 'a curve by its numbers');
  assert.equal(isWeakKey(new Uint8Array([0x30, 0])), true);
});

test('names are told in the order in which they stand, whatever is in them', async () => {
  const name = 'C=DE, O=Acme, OU=Ops, DC=example, CN=a\u0007\u202eb, 2.5.4.5=17';
  const { subject } = readCertificate(new Uint8Array((await made('P-256', {}, name)).rawData));
  assert.equal(nameText(subject), 'C=DE, O=Acme, OU=Ops, DC=example, CN=a??b, 550405=17');
});

test('an RSA authority signs nothing where RSA cannot be done', async () => {
  takeCrypto('noble');
  const one = readCertificate(new Uint8Array((await made('RSA')).rawData));
  assert.equal(isSignedBy(one, one), false);
});

test('certificates that are made here are read by Node, up to 2049 and beyond', () => {
  for (const notAfter of [Date.parse('2049-12-31T23:59:59Z'), Date.parse('2050-01-01T00:00:00Z')]) {
    const scalar = newScalar('ecdsa-p256', systemRandom);
    const spki = ecPublicKey('ecdsa-p256', scalar);
    const name = commonNameDer('kms é');
    const wanted = {
      subject: name,
      issuer: name,
      spki,
      issuerKey: spki,
      notBefore: Date.parse('2026-01-01'),
      notAfter,
    };
    for (const isAuthority of [true, false]) {
      const tbs = certificateToSign({ ...wanted, serial: newSerial(systemRandom), isAuthority });
      const der = signedCertificate(tbs, ecdsaSign('ecdsa-p256', scalar, { bytes: tbs, isDigest: false }, 'sha2-256'));
      const node = new X509Certificate(der);
      assert.ok(node.verify(node.publicKey));
      assert.equal(node.ca, isAuthority);
      assert.equal(node.validToDate.getTime(), notAfter);
      assert.equal(node.subject, 'CN=kms é');
      const read: Certificate = readCertificate(der);
      assert.ok(isSignedBy(read, read));
      assert.equal(read.isAuthority, isAuthority);
      assert.deepEqual(read.subjectKeyId, read.authorityKeyId);
      const theirs = new x509.X509Certificate(Buffer.from(der));
      assert.equal(
        theirs.getExtension(x509.ExtendedKeyUsageExtension)?.usages.includes('1.3.6.1.5.5.7.3.2') ?? false,
        !isAuthority,
      );
    }
  }
});

test('altered bytes are refused or read, never more', async () => {
  const whole = new Uint8Array((await made('P-256')).rawData);
  const survives = (bytes: Uint8Array): void => {
    try {
      const read = readCertificate(bytes);
      isSignedBy(read, read);
      isWeakKey(read.spki);
      nameText(read.subject);
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    }
  };
  for (let length = 0; length < whole.length; length++) survives(whole.subarray(0, length));
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length - 1), fc.nat(255), (i, x, j, y) => {
      const bytes = whole.slice();
      bytes[i] = x;
      bytes[j] = y;
      survives(bytes);
    }),
    { numRuns: 3000 },
  );
  assert.throws(() => readCertificate(new Uint8Array(70_000)), { name: 'KmsError' });
});

test('certificates of other versions are refused as such', () => {
  // The part that is signed, with a serial number; version 1 is not written in it.
  for (const [version, message] of [
    ['', /version 1, where 3 is needed/],
    ['a003020101', /not of version 3/],
  ] as const) {
    const signed = Buffer.from(`${version}020101`, 'hex');
    const parts = [Buffer.from([0x30, signed.length]), signed, Buffer.from('3000030100', 'hex')];
    const inside = Buffer.concat(parts);
    assert.throws(() => readCertificate(Buffer.concat([Buffer.from([0x30, inside.length]), inside])), message);
  }
});
