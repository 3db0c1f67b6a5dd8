// X.509 certificates (RFC 5280) as far as logins of programs need them: a strict reader, who signed one, and making
// those of a small certificate authority. Names are read from the bytes that were signed, never from a printed form.
import { KmsError } from '../errors.ts';
import { concatBytes, equalBytes, fromUtf8, toHex, utf8 } from './bytes.ts';
import { DerReader, der, derBits, derUnsigned, malformed, onlySequence, tags } from './der.ts';
import { sha256 } from './hash.ts';
import { ecPublicKeyOid, pointOfSpki } from './managed/ecdsa.ts';
import { type AsymmetricType, importPublicKey } from './managed/keys.ts';
import { rsaOid } from './managed/rsa-keys.ts';
import { type SignatureOptions, type SigningType, verifyWithKey } from './managed/signatures.ts';

/** A subject alternative name of a kind that programs are known by. */
interface AlternativeName {
  readonly kind: 'dns' | 'email' | 'uri';
  readonly value: string;
}

export interface Certificate {
  readonly der: Uint8Array;
  /** The part that is signed. */
  readonly tbs: Uint8Array;
  /** Contents of the INTEGER. */
  readonly serial: Uint8Array;
  /** Names in DER, compared byte by byte. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** For people alone: it proves nothing. */
  readonly commonName: string;
  /** In epoch milliseconds; the last second counts. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** SubjectPublicKeyInfo in DER. */
  readonly spki: Uint8Array;
  /** AlgorithmIdentifier in DER. */
  readonly algorithm: Uint8Array;
  readonly signature: Uint8Array;
  readonly names: readonly AlternativeName[];
  readonly isAuthority: boolean;
  /** Authorities that may stand between it and a leaf; undefined = any number. */
  readonly pathLength: number | undefined;
  /** The first byte of KeyUsage; undefined if it may be used for anything. */
  readonly keyUsage: number | undefined;
  /** Extended key usages in hex; undefined if it has none. */
  readonly purposes: readonly string[] | undefined;
  readonly subjectKeyId: Uint8Array;
  readonly authorityKeyId: Uint8Array;
  /** Whether it has a restriction that is not understood here. */
  readonly isRestricted: boolean;
}

export const keyUsages = { digitalSignature: 0x80, keyCertSign: 0x04, crlSign: 0x02 } as const;

/** id-kp-clientAuth. */
export const clientAuth = '2b06010505070302';

const longest = 65_536;
const longestSerial = 32;

const extensionIds = {
  subjectKeyId: '551d0e',
  keyUsage: '551d0f',
  alternativeNames: '551d11',
  basicConstraints: '551d13',
  nameConstraints: '551d1e',
  authorityKeyId: '551d23',
  purposes: '551d25',
} as const;
const understood: ReadonlySet<string> = new Set([
  extensionIds.subjectKeyId,
  extensionIds.keyUsage,
  extensionIds.alternativeNames,
  extensionIds.basicConstraints,
  extensionIds.authorityKeyId,
  extensionIds.purposes,
]);
const commonNameId = '550403';

/** Throws `invalid` for anything but one certificate of version 3. */
export function readCertificate(bytes: Uint8Array): Certificate {
  if (bytes.length > longest) throw malformed('longer than any certificate');
  const outer = onlySequence(bytes);
  const tbs = outer.any();
  const algorithm = outer.any().whole;
  const signature = outer.bits();
  outer.end();
  if (tbs.tag !== tags.sequence) throw malformed('a value of another type than expected');
  const inside = new DerReader(tbs.contents);
  // Version 1 is the one that is not written.
  if (tbs.contents[0] !== tags.explicit0) throw malformed('a certificate of version 1, where 3 is needed');
  const version = new DerReader(inside.read(tags.explicit0));
  if (toHex(version.unsigned()) !== '02') throw malformed('a certificate that is not of version 3');
  version.end();
  const serial = inside.read(tags.integer);
  if (serial.length > longestSerial) throw malformed('a serial number');
  if (!equalBytes(inside.any().whole, algorithm)) throw malformed('two algorithms of one signature');
  const issuer = inside.any().whole;
  const validity = inside.sequence();
  const notBefore = readTime(validity);
  const notAfter = readTime(validity);
  validity.end();
  const subject = inside.any().whole;
  const spki = inside.any().whole;
  inside.readIf(tags.implicit1);
  inside.readIf(tags.implicit2);
  const extensions = inside.readIf(tags.explicit3);
  inside.end();
  const names = { issuer, subject, commonName: commonNameOf(subject) };
  const common = { der: bytes, tbs: tbs.whole, serial, notBefore, notAfter, spki, algorithm, signature };
  return { ...common, ...names, ...readExtensions(extensions) };
}

function readTime(reader: DerReader): number {
  const { tag, contents } = reader.any();
  const text = fromUtf8(contents) ?? '';
  const form = tag === tags.utcTime ? /^\d{12}Z$/ : tag === tags.generalizedTime ? /^\d{14}Z$/ : undefined;
  if (!form?.test(text)) throw malformed('a time');
  // Two digits of a year stand for 1950 to 2049.
  const whole = tag === tags.utcTime ? (text < '5' ? `20${text}` : `19${text}`) : text;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = [4, 6, 8, 10, 12, 14].map((end, n) =>
    Number(whole.slice(n === 0 ? 0 : end - 2, end)),
  );
  const time = Date.UTC(year, month - 1, day, hour, minute, second);
  // A day or hour that there is not would be another one; years before 100 would be of the last century.
  const isReal = new Date(time).toISOString().replace(/[-T:]|\.000/g, '') === whole;
  if (!isReal) throw malformed('a time');
  return time;
}

function commonNameOf(name: Uint8Array): string {
  const parts = onlySequence(name);
  while (!parts.isAtEnd) {
    const set = new DerReader(parts.read(tags.set));
    while (!set.isAtEnd) {
      const pair = set.sequence();
      const id = toHex(pair.read(tags.oid));
      const { contents } = pair.any();
      if (id === commonNameId) return fromUtf8(contents) ?? '';
    }
  }
  return '';
}

/** Attributes of names by the contents of their OBJECT IDENTIFIER in hex. */
const attributes: Readonly<Record<string, string>> = {
  [commonNameId]: 'CN',
  '550406': 'C',
  '550407': 'L',
  '550408': 'ST',
  '55040a': 'O',
  '55040b': 'OU',
  '0992268993f22c640119': 'DC',
};

/** A name for people, such as `O=Acme, CN=root`: no proof of anything, since another name may read the same. */
export function nameText(name: Uint8Array): string {
  const found: string[] = [];
  for (const parts = onlySequence(name); !parts.isAtEnd; ) {
    for (const set = new DerReader(parts.read(tags.set)); !set.isAtEnd; ) {
      const pair = set.sequence();
      const id = toHex(pair.read(tags.oid));
      const { contents } = pair.any();
      found.push(`${attributes[id] ?? id}=${(fromUtf8(contents) ?? toHex(contents)).replace(/\p{C}/gu, '?')}`);
    }
  }
  return found.join(', ');
}

type Extensions = Pick<
  Certificate,
  'names' | 'isAuthority' | 'pathLength' | 'keyUsage' | 'purposes' | 'subjectKeyId' | 'authorityKeyId' | 'isRestricted'
>;

function readExtensions(bytes: Uint8Array | undefined): Extensions {
  const found = new Map<string, Uint8Array>();
  let isRestricted = false;
  for (const list = bytes ? onlySequence(bytes) : new DerReader(new Uint8Array()); !list.isAtEnd; ) {
    const each = list.sequence();
    const id = toHex(each.read(tags.oid));
    const isCritical = each.isNext(tags.boolean) && isTrue(each.read(tags.boolean));
    const value = each.read(tags.octetString);
    each.end();
    if (found.has(id)) throw malformed('an extension that is there twice');
    found.set(id, value);
    // Constraints on names would be lost if they were not critical.
    if ((isCritical && !understood.has(id)) || id === extensionIds.nameConstraints) isRestricted = true;
  }
  const read = <T>(id: string, reader: (value: Uint8Array) => T): T | undefined => {
    const value = found.get(id);
    return value && reader(value);
  };
  const basic = read(extensionIds.basicConstraints, readBasicConstraints);
  return {
    names: read(extensionIds.alternativeNames, readNames) ?? [],
    isAuthority: basic?.isAuthority ?? false,
    pathLength: basic?.pathLength,
    keyUsage: read(extensionIds.keyUsage, readKeyUsage),
    purposes: read(extensionIds.purposes, readPurposes),
    subjectKeyId: read(extensionIds.subjectKeyId, readKeyId) ?? new Uint8Array(),
    authorityKeyId: read(extensionIds.authorityKeyId, readAuthorityKeyId) ?? new Uint8Array(),
    isRestricted,
  };
}

function isTrue(contents: Uint8Array): boolean {
  if (contents.length === 1 && (contents[0] === 0xff || contents[0] === 0)) return contents[0] === 0xff;
  throw malformed('a boolean');
}

function readBasicConstraints(value: Uint8Array): Pick<Certificate, 'isAuthority' | 'pathLength'> {
  const inside = onlySequence(value);
  const isAuthority = inside.isNext(tags.boolean) && isTrue(inside.read(tags.boolean));
  const most = inside.isNext(tags.integer) ? inside.unsigned() : undefined;
  inside.end();
  if (most && most.length > 1) throw malformed('a path length');
  return { isAuthority, pathLength: most && (most[0] ?? 0) };
}

function readKeyUsage(value: Uint8Array): number {
  const reader = new DerReader(value);
  const [unused = 8, bits = 0] = reader.read(tags.bitString);
  reader.end();
  if (unused > 7) throw malformed('a bit string');
  return bits;
}

function readPurposes(value: Uint8Array): string[] {
  const purposes: string[] = [];
  for (const list = onlySequence(value); !list.isAtEnd; ) purposes.push(toHex(list.read(tags.oid)));
  return purposes;
}

function readKeyId(value: Uint8Array): Uint8Array {
  const reader = new DerReader(value);
  const id = reader.read(tags.octetString);
  reader.end();
  return id;
}

function readAuthorityKeyId(value: Uint8Array): Uint8Array {
  return onlySequence(value).readIf(tags.implicit0) ?? new Uint8Array();
}

/** Tags of the kinds of names that are read, and those of all others. */
const nameKinds: Readonly<Record<number, AlternativeName['kind']>> = { 129: 'email', 130: 'dns', 134: 'uri' };
const otherNames: ReadonlySet<number> = new Set([0xa0, 0xa3, 0xa4, 0xa5, 0x87, 0x88]);

function readNames(value: Uint8Array): AlternativeName[] {
  const names: AlternativeName[] = [];
  for (const list = onlySequence(value); !list.isAtEnd; ) {
    const { tag, contents } = list.any();
    const kind = nameKinds[tag];
    if (kind === undefined) {
      if (!otherNames.has(tag)) throw malformed('a name of no known kind');
      continue;
    }
    // Other bytes, such as a zero, cut a name short in some programs.
    if (contents.length === 0 || !contents.every((byte) => byte > 0x20 && byte < 0x7f)) throw malformed('a name');
    names.push({ kind, value: String.fromCharCode(...contents) });
  }
  return names;
}

/** Algorithms of signatures by the contents of their OBJECT IDENTIFIER in hex, each with the keys that make them. */
const algorithms: Readonly<
  Record<string, { readonly types: readonly (SigningType & AsymmetricType)[]; readonly options: SignatureOptions }>
> = {
  '2a8648ce3d040302': ecdsaWith('sha2-256'),
  '2a8648ce3d040303': ecdsaWith('sha2-384'),
  '2a8648ce3d040304': ecdsaWith('sha2-512'),
  '2a864886f70d01010b': rsaWith('sha2-256'),
  '2a864886f70d01010c': rsaWith('sha2-384'),
  '2a864886f70d01010d': rsaWith('sha2-512'),
  '2b6570': { types: ['ed25519'], options: {} },
};

function ecdsaWith(hash: 'sha2-256' | 'sha2-384' | 'sha2-512') {
  return { types: ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521'], options: { hash } } as const;
}

function rsaWith(hash: 'sha2-256' | 'sha2-384' | 'sha2-512') {
  return { types: ['rsa-2048', 'rsa-3072', 'rsa-4096'], options: { hash, padding: 'pkcs1v15' } } as const;
}

/**
 * Whether the issuer's key signed the certificate, with an algorithm that still counts: RSA of 2048, 3072 or 4096 bits,
 * ECDSA over P-256, P-384 or P-521, Ed25519, with SHA-2. Without a platform that has RSA, none of RSA counts.
 */
export function isSignedBy({ algorithm, tbs, signature }: Certificate, { spki }: Certificate): boolean {
  const named = algorithms[toHex(onlySequence(algorithm).read(tags.oid))];
  for (const type of named?.types ?? []) {
    const publicKey = keyOfType(type, spki);
    if (!publicKey || !named) continue;
    try {
      return verifyWithKey(type, publicKey, { bytes: tbs, isDigest: false }, named.options, signature);
    } catch (error) {
      if (error instanceof KmsError && error.code === 'unavailable') return false;
      throw error;
    }
  }
  return false;
}

/** Whether the signature is of an algorithm that counts, whatever key made it. */
export function hasKnownSignature({ algorithm }: Certificate): boolean {
  return algorithms[toHex(onlySequence(algorithm).read(tags.oid))] !== undefined;
}

/** Whether signatures of the key can count: of an authority with another key, nothing ever does. */
export function isSigner({ spki }: Certificate): boolean {
  const types = new Set(Object.values(algorithms).flatMap((each) => each.types));
  return [...types].some((type) => keyOfType(type, spki) !== undefined);
}

function keyOfType(type: AsymmetricType, spki: Uint8Array): Uint8Array | undefined {
  try {
    return importPublicKey(type, 'der', spki);
  } catch {
    return undefined;
  }
}

/** RSA for RSASSA-PSS alone, which TLS 1.3 uses. */
const rsaPssOid = '2a864886f70d01010a';
/** P-256, P-384 and P-521: the curves whose signatures TLS takes here. */
const tlsCurves = ['2a8648ce3d030107', '2b81040022', '2b81040023'];
/** Ed25519, Ed448, and the three sizes of ML-DSA. */
const otherTlsKeys = ['2b6570', '2b6571', '608648016503040311', '608648016503040312', '608648016503040313'];

/** Why `isWeakKey` refuses a key, as the end of a sentence about the certificate. */
export const weakKey = 'its key is not RSA from 2048 bits, P-256, P-384, P-521, Ed25519, Ed448 or ML-DSA';

/** Whether the public key is too small, malformed, or of a kind that TLS does not take for client certificates here. */
export function isWeakKey(spki: Uint8Array): boolean {
  try {
    const outer = onlySequence(spki);
    const algorithm = outer.sequence();
    const id = toHex(algorithm.read(tags.oid));
    if (id === toHex(rsaOid) || id === rsaPssOid) {
      const modulus = new DerReader(outer.bits()).sequence().unsigned();
      return modulus.length < 256 || (modulus.length === 256 && (modulus[0] ?? 0) < 0x80);
    }
    if (id === toHex(ecPublicKeyOid)) return !tlsCurves.includes(toHex(algorithm.read(tags.oid)));
    return !otherTlsKeys.includes(id);
  } catch {
    return true;
  }
}

/** A certificate to be made, under a key of the type ecdsa-p256. */
interface NewCertificate {
  readonly serial: Uint8Array;
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly spki: Uint8Array;
  /** Public key of the issuer. */
  readonly issuerKey: Uint8Array;
  /** Whether it is an authority, for leaves alone; otherwise it is a client's. */
  readonly isAuthority: boolean;
}

const ecdsaSha256 = der(tags.sequence, der(tags.oid, Uint8Array.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)));

/** The part of a new certificate that is signed, with ECDSA and SHA-256. */
export function certificateToSign(wanted: NewCertificate): Uint8Array {
  const { serial, subject, issuer, notBefore, notAfter, spki, issuerKey, isAuthority } = wanted;
  const yes = der(tags.boolean, Uint8Array.of(0xff));
  const basic = isAuthority ? der(tags.sequence, yes, derUnsigned(Uint8Array.of(0))) : der(tags.sequence);
  const usage = isAuthority ? keyUsages.keyCertSign | keyUsages.crlSign : keyUsages.digitalSignature;
  // The first byte counts the zeros at the end, as DER has it.
  const usageBits = der(tags.bitString, Uint8Array.of(isAuthority ? 1 : 7, usage));
  const purposes = der(tags.sequence, der(tags.oid, Uint8Array.from([0x2b, 6, 1, 5, 5, 7, 3, 2])));
  const extensions = [
    extension(extensionIds.basicConstraints, basic, yes),
    extension(extensionIds.keyUsage, usageBits, yes),
    ...(isAuthority ? [] : [extension(extensionIds.purposes, purposes)]),
    extension(extensionIds.subjectKeyId, der(tags.octetString, keyIdOf(spki))),
    extension(extensionIds.authorityKeyId, der(tags.sequence, der(tags.implicit0, keyIdOf(issuerKey)))),
  ];
  return der(
    tags.sequence,
    der(tags.explicit0, derUnsigned(Uint8Array.of(2))),
    derUnsigned(serial),
    ecdsaSha256,
    issuer,
    der(tags.sequence, derTime(notBefore), derTime(notAfter)),
    subject,
    spki,
    der(tags.explicit3, der(tags.sequence, ...extensions)),
  );
}

/** A certificate of the part that was signed and its signature, in DER. */
export function signedCertificate(tbs: Uint8Array, signature: Uint8Array): Uint8Array {
  return der(tags.sequence, tbs, ecdsaSha256, derBits(signature));
}

function extension(id: string, value: Uint8Array, ...critical: readonly Uint8Array[]): Uint8Array {
  const bytes = Uint8Array.from(id.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return der(tags.sequence, der(tags.oid, bytes), ...critical, der(tags.octetString, value));
}

/** The first 160 bits of the SHA-256 of the public key (RFC 7093 §2). */
function keyIdOf(spki: Uint8Array): Uint8Array {
  return sha256(pointOfSpki('ecdsa-p256', spki)).subarray(0, 20);
}

/** In UTCTime up to 2049 (RFC 5280 §4.1.2.5). */
function derTime(time: number): Uint8Array {
  const digits = new Date(time)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace(/[-:T]/g, '');
  const isShort = digits < '2050';
  return der(isShort ? tags.utcTime : tags.generalizedTime, utf8(isShort ? digits.slice(2) : digits));
}

/** A name in DER with one common name of at most 64 characters. */
export function commonNameDer(text: string): Uint8Array {
  const id = Uint8Array.of(0x55, 0x04, 0x03);
  const pair = der(tags.sequence, der(tags.oid, id), der(tags.utf8String, utf8(text.slice(0, 64))));
  return der(tags.sequence, der(tags.set, pair));
}

/** A serial number: positive and of 16 bytes. */
export function newSerial(random: (length: number) => Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(1), random(15));
}
