// PKCS #12 (RFC 7292): a certificate, its private key and its authority in one file under a password, for software that
// takes nothing else. Encrypted with AES-256 by PBES2 and authenticated with HMAC-SHA-256, as OpenSSL 3 writes it, so
// that what reads RC2 or Triple-DES alone does not open it. It is only written here.
import { concatBytes, fromHex, utf8 } from './bytes.ts';
import { der, derUnsigned, tags } from './der.ts';
import { blockEncrypt } from './managed/block-modes.ts';
import { hashKey, hmacKey, passwordKey } from './managed/derivation.ts';

interface Pkcs12 {
  /** DER. */
  readonly certificate: Uint8Array;
  /** PKCS #8. */
  readonly privateKey: Uint8Array;
  /** DER. */
  readonly authority: Uint8Array;
  /** The name under which software lists the key. */
  readonly name: string;
  /** Printable ASCII: software disagrees on the bytes of other letters. */
  readonly password: string;
}

const oid = (hex: string): Uint8Array => der(tags.oid, fromHex(hex) ?? new Uint8Array());
const oids = {
  data: oid('2a864886f70d010701'),
  encryptedData: oid('2a864886f70d010706'),
  keyBag: oid('2a864886f70d010c0a0102'),
  certificateBag: oid('2a864886f70d010c0a0103'),
  x509: oid('2a864886f70d01091601'),
  friendlyName: oid('2a864886f70d010914'),
  localKeyId: oid('2a864886f70d010915'),
  pbes2: oid('2a864886f70d01050d'),
  pbkdf2: oid('2a864886f70d01050c'),
  hmacSha256: oid('2a864886f70d0209'),
  aes256Cbc: oid('60864801650304012a'),
  sha256: oid('608648016503040201'),
} as const;

/** Rounds for both keys, as OpenSSL makes them. They matter for passwords that people choose. */
const rounds = 2048;
const saltLength = 16;

/** Each part has a salt and a vector of its own, of `random`. */
export function toPkcs12(
  { certificate, privateKey, authority, name, password }: Pkcs12,
  random: (length: number) => Uint8Array,
): Uint8Array {
  const attributes = der(
    tags.set,
    ...sorted([
      sequence(oids.friendlyName, der(tags.set, der(tags.bmpString, utf16(name)))),
      sequence(oids.localKeyId, der(tags.set, der(tags.octetString, hashKey('sha1', certificate)))),
    ]),
  );
  const certificates = sequence(
    sequence(oids.certificateBag, explicit(certificateBag(certificate)), attributes),
    sequence(oids.certificateBag, explicit(certificateBag(authority))),
  );
  const key = encrypted(privateKey, password, random);
  const shrouded = sequence(key.algorithm, der(tags.octetString, key.bytes));
  const safe = sequence(
    encryptedContents(certificates, password, random),
    dataContents(sequence(sequence(oids.keyBag, explicit(shrouded), attributes))),
  );
  return sequence(number(3), dataContents(safe), authentication(safe, password, random));
}

const sequence = (...parts: readonly Uint8Array[]): Uint8Array => der(tags.sequence, ...parts);
const explicit = (part: Uint8Array): Uint8Array => der(tags.explicit0, part);
const nothing = der(tags.null);

function number(value: number): Uint8Array {
  return derUnsigned(Uint8Array.of(value >> 8, value & 0xff));
}

function certificateBag(certificate: Uint8Array): Uint8Array {
  return sequence(oids.x509, explicit(der(tags.octetString, certificate)));
}

/** ContentInfo in clear. */
function dataContents(bytes: Uint8Array): Uint8Array {
  return sequence(oids.data, explicit(der(tags.octetString, bytes)));
}

/** ContentInfo under the password. */
function encryptedContents(contents: Uint8Array, password: string, random: (length: number) => Uint8Array): Uint8Array {
  const { algorithm, bytes } = encrypted(contents, password, random);
  const info = sequence(oids.data, algorithm, der(tags.implicit0, bytes));
  return sequence(oids.encryptedData, explicit(sequence(number(0), info)));
}

/** RFC 8018 §6.2, with its parameters. */
function encrypted(plain: Uint8Array, password: string, random: (length: number) => Uint8Array) {
  const [salt, iv] = [random(saltLength), random(16)];
  const key = passwordKey({ hash: 'sha2-256', key: utf8(password), salt, iterations: rounds, length: 32 });
  const sealed = blockEncrypt(
    { mode: 'cbc', key, iv, padding: 'pkcs7', associated: new Uint8Array(), tagLength: 0 },
    plain,
  );
  key.fill(0);
  const derivation = sequence(
    oids.pbkdf2,
    sequence(der(tags.octetString, salt), number(rounds), sequence(oids.hmacSha256, nothing)),
  );
  const cipher = sequence(oids.aes256Cbc, der(tags.octetString, iv));
  return { algorithm: sequence(oids.pbes2, sequence(derivation, cipher)), bytes: sealed.bytes };
}

/** MacData over the whole contents. */
function authentication(safe: Uint8Array, password: string, random: (length: number) => Uint8Array): Uint8Array {
  const salt = random(saltLength);
  const key = macKey(password, salt);
  const digest = der(tags.octetString, hmacKey('sha2-256', key, safe));
  key.fill(0);
  return sequence(sequence(sequence(oids.sha256, nothing), digest), der(tags.octetString, salt), number(rounds));
}

/** RFC 7292 §B.2 with SHA-256 and ID 3, for keys no longer than the hash. */
function macKey(password: string, salt: Uint8Array): Uint8Array {
  const block = 64;
  const filled = (bytes: Uint8Array): Uint8Array =>
    Uint8Array.from({ length: Math.ceil(bytes.length / block) * block }, (_, n) => bytes[n % bytes.length] ?? 0);
  const secret = concatBytes(utf16(password), new Uint8Array(2));
  let key = concatBytes(new Uint8Array(block).fill(3), filled(salt), filled(secret));
  for (let round = 0; round < rounds; round++) {
    const next = hashKey('sha2-256', key);
    key.fill(0);
    key = concatBytes(next);
  }
  secret.fill(0);
  return key;
}

/** BMPString: UTF-16, big-endian. */
function utf16(text: string): Uint8Array {
  return Uint8Array.from(
    { length: text.length * 2 },
    (_, n) => (text.charCodeAt(n >> 1) >> (n % 2 === 0 ? 8 : 0)) & 0xff,
  );
}

/** X.690 §11.6: elements of a SET OF in the order of their bytes. */
function sorted(parts: readonly Uint8Array[]): Uint8Array[] {
  return parts.toSorted((a, b) => {
    const at = a.findIndex((byte, n) => byte !== b[n]);
    return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
  });
}
