// Types of managed keys, and the facts of each that everything asks: what it can be used for, how long it is, what it
// signs with, and its names in the interfaces of other systems.

export const keyUses = ['encrypt', 'decrypt', 'sign', 'verify', 'mac', 'wrap', 'unwrap', 'derive', 'export'] as const;
export type KeyUse = (typeof keyUses)[number];

export const keyTypes = [
  'aes128-gcm',
  'aes256-gcm',
  'chacha20-poly1305',
  'rsa-2048',
  'rsa-3072',
  'rsa-4096',
  'ecdsa-p256',
  'ecdsa-p384',
  'ecdsa-p521',
  'ecdsa-secp256k1',
  'ed25519',
  'hmac-sha224',
  'hmac-sha256',
  'hmac-sha384',
  'hmac-sha512',
  'ml-dsa-44',
  'ml-dsa-65',
  'ml-dsa-87',
  'secret',
] as const;
export type KeyType = (typeof keyTypes)[number];

/** Items in one request. */
export const mostItems = 1000;

/** Versions of a secret whose values are kept, and those named in one request. */
export const mostSecretVersions = 1000;

/** With random 96-bit nonces, this many messages per key keep the chance of a collision below 2^-32. */
export const messagesPerVersion = 2 ** 32;

/** Hashes for signatures and MACs. */
export const signingHashes = ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'] as const;

/** Hashes of messages without a key. */
export const plainHashes = [...signingHashes, 'sha3-224', 'sha3-256', 'sha3-384', 'sha3-512'] as const;

/** Types of the keys to which others are wrapped for import. */
export const wrappingKeyTypes = ['rsa-4096', 'rsa-3072', 'rsa-2048'] as const satisfies readonly KeyType[];

export type WrappingKeyType = (typeof wrappingKeyTypes)[number];

/** The type of a stored wrapping key; a key of 4096 bits has the day alone as its id. */
export function typeOfWrappingKey(id: string): WrappingKeyType {
  return wrappingKeyTypes.find((type) => id.endsWith(type)) ?? 'rsa-4096';
}

/** Types of the key pairs that can be had as data keys. */
export const pairTypes = [
  'rsa-2048',
  'rsa-3072',
  'rsa-4096',
  'ecdsa-p256',
  'ecdsa-p384',
  'ecdsa-p521',
  'ecdsa-secp256k1',
  'ed25519',
] as const satisfies readonly KeyType[];

/** Random bytes in one answer. */
export const mostRandomBytes = 131_072;

type KeyHash = 'sha1' | 'sha2-224' | 'sha2-256' | 'sha2-384' | 'sha2-512';

/** A purpose, of which a key has one; it has any of that purpose's uses. */
interface Purpose {
  /** Uses of a key made without saying which. */
  readonly usual: readonly KeyUse[];
  /** Uses that can be asked for. */
  readonly possible: readonly KeyUse[];
  /** Hashes for OAEP, the usual one first. */
  readonly oaepHashes?: readonly KeyHash[] | undefined;
  /** AWS KMS: KeyUsage, and algorithms in its order, since clients take the first. Undefined if it has none. */
  readonly aws?: { readonly usage: string; readonly algorithms: readonly string[] } | undefined;
}

interface VaultName {
  readonly type: string;
  /** ML-DSA only. */
  readonly parameterSet?: string;
  /** For types that share a name: whether a key made by that name has another type. */
  readonly isShownOnly?: boolean;
}

interface KeyTypeFacts {
  /** Strength as others count it: of the key, the modulus or the curve. Undefined for secrets and ML-DSA. */
  readonly bits?: number | undefined;
  /** Whether there is a public key. */
  readonly isAsymmetric: boolean;
  /** The first is the one if no uses are asked for. */
  readonly purposes: readonly [Purpose, ...Purpose[]];
  /** Bytes of a generated key as it is kept; undefined for RSA, whose PKCS #8 has no one length. */
  readonly length?: number | undefined;
  /** Fewest and most bytes that can be imported; as generated if undefined. */
  readonly importLengths?: readonly [least: number, most: number] | undefined;
  /** Structure of a kept key: its own bytes, or a standard's. */
  readonly form: 'raw' | 'pkcs8' | 'seed' | 'scalar';
  /** Structure of a public key outside of SPKI: bytes of its own, a point of SEC 1, or PKCS #1. */
  readonly publicForm?: 'raw' | 'point' | 'pkcs1' | undefined;
  /** Hashes for signing, the usual one first; the one of HMAC. */
  readonly hashes: readonly KeyHash[];
  readonly paddings: readonly ('pss' | 'pkcs1v15')[];
  /** Signatures in DER, or as fixed-length numbers one after the other (JWS). */
  readonly encodings: readonly ('der' | 'raw')[];
  /** Bytes that can be signed in place of a message: its hash, or ML-DSA's message representative µ. */
  readonly prehashed: 'hash' | 'mu' | 'none';
  /** Name as a type in Vault's and OpenBao's transit. */
  readonly vault?: VaultName | undefined;
  /** KeySpec of AWS KMS. */
  readonly awsSpec?: string | undefined;
  /** Cryptographic Algorithm, Length in bits and Recommended Curve of KMIP. Older clients call EC keys ECDSA. */
  readonly kmip?: { readonly algorithm: string; readonly length: number; readonly curve?: string } | undefined;
}

const ciphers: Purpose = {
  usual: ['encrypt', 'decrypt'],
  possible: ['encrypt', 'decrypt', 'wrap', 'unwrap', 'derive', 'export'],
};

/** AES-KWP is AES's alone. */
const streamCiphers: Purpose = { ...ciphers, possible: ['encrypt', 'decrypt', 'derive', 'export'] };

function signing(...algorithms: readonly string[]): Purpose {
  return {
    usual: ['sign', 'verify'],
    possible: ['sign', 'verify', 'export'],
    aws: { usage: 'SIGN_VERIFY', algorithms },
  };
}

const agreement: Purpose = {
  usual: ['derive'],
  possible: ['derive', 'export'],
  aws: { usage: 'KEY_AGREEMENT', algorithms: ['ECDH'] },
};

const symmetric = {
  isAsymmetric: false,
  form: 'raw',
  hashes: [],
  paddings: [],
  encodings: [],
  prehashed: 'none',
} as const satisfies Partial<KeyTypeFacts>;

function rsa(bits: 2048 | 3072 | 4096): KeyTypeFacts {
  const hashes = ['SHA_256', 'SHA_384', 'SHA_512'];
  return {
    bits,
    isAsymmetric: true,
    purposes: [
      signing(...hashes.map((hash) => `RSASSA_PKCS1_V1_5_${hash}`), ...hashes.map((hash) => `RSASSA_PSS_${hash}`)),
      {
        usual: ['encrypt', 'decrypt'],
        possible: ['encrypt', 'decrypt', 'wrap', 'unwrap', 'export'],
        oaepHashes: ['sha2-256', 'sha1', 'sha2-384', 'sha2-512'],
        aws: { usage: 'ENCRYPT_DECRYPT', algorithms: ['RSAES_OAEP_SHA_1', 'RSAES_OAEP_SHA_256'] },
      },
    ],
    form: 'pkcs8',
    publicForm: 'pkcs1',
    hashes: ['sha2-256', 'sha2-384', 'sha2-512'],
    paddings: ['pss', 'pkcs1v15'],
    encodings: [],
    prehashed: 'hash',
    vault: { type: `rsa-${bits}` },
    awsSpec: `RSA_${bits}`,
    kmip: { algorithm: 'RSA', length: bits },
  };
}

interface Curve {
  readonly bits: number;
  readonly length: number;
  readonly hash: Exclude<KeyHash, 'sha1'>;
  readonly vault?: string;
  readonly awsSpec: string;
  readonly awsHash: string;
  readonly kmipCurve: string;
}

const ecHashes = ['sha2-256', 'sha2-384', 'sha2-512', 'sha2-224'] as const;

function ecdsa({ bits, length, hash, vault, awsSpec, awsHash, kmipCurve }: Curve): KeyTypeFacts {
  const purpose = signing(`ECDSA_${awsHash}`);
  const agree = awsSpec === 'ECC_SECG_P256K1' ? { ...agreement, aws: undefined } : agreement;
  return {
    bits,
    isAsymmetric: true,
    purposes: [purpose, agree],
    length,
    form: 'scalar',
    publicForm: 'point',
    hashes: [hash, ...ecHashes.filter((each) => each !== hash)],
    paddings: [],
    encodings: ['der', 'raw'],
    prehashed: 'hash',
    vault: vault === undefined ? undefined : { type: vault },
    awsSpec,
    kmip: { algorithm: 'EC', length: bits, curve: kmipCurve },
  };
}

function hmac(length: 28 | 32 | 48 | 64, hash: Exclude<KeyHash, 'sha1'>): KeyTypeFacts {
  const bits = length * 8;
  return {
    ...symmetric,
    bits,
    purposes: [
      {
        usual: ['mac', 'verify'],
        possible: ['mac', 'verify', 'derive', 'export'],
        aws: { usage: 'GENERATE_VERIFY_MAC', algorithms: [`HMAC_SHA_${bits}`] },
      },
    ],
    length,
    importLengths: [16, 512],
    hashes: [hash],
    vault: { type: 'hmac', isShownOnly: hash !== 'sha2-256' },
    awsSpec: `HMAC_${bits}`,
    kmip: { algorithm: `HMAC_SHA${bits}`, length: bits },
  };
}

function mlDsa(set: 44 | 65 | 87): KeyTypeFacts {
  return {
    isAsymmetric: true,
    purposes: [signing('ML_DSA_SHAKE_256')],
    length: 32,
    form: 'seed',
    publicForm: 'raw',
    hashes: [],
    paddings: [],
    encodings: [],
    prehashed: 'mu',
    vault: { type: 'ml-dsa', parameterSet: `${set}` },
    awsSpec: `ML_DSA_${set}`,
  };
}

export const keyTypeFacts: Readonly<Record<KeyType, KeyTypeFacts>> = {
  'aes128-gcm': {
    ...symmetric,
    bits: 128,
    purposes: [ciphers],
    length: 16,
    vault: { type: 'aes128-gcm96' },
    kmip: { algorithm: 'AES', length: 128 },
  },
  'aes256-gcm': {
    ...symmetric,
    bits: 256,
    purposes: [{ ...ciphers, aws: { usage: 'ENCRYPT_DECRYPT', algorithms: ['SYMMETRIC_DEFAULT'] } }],
    length: 32,
    vault: { type: 'aes256-gcm96' },
    awsSpec: 'SYMMETRIC_DEFAULT',
    kmip: { algorithm: 'AES', length: 256 },
  },
  'chacha20-poly1305': {
    ...symmetric,
    bits: 256,
    purposes: [streamCiphers],
    length: 32,
    vault: { type: 'chacha20-poly1305' },
    kmip: { algorithm: 'ChaCha20Poly1305', length: 256 },
  },
  'rsa-2048': rsa(2048),
  'rsa-3072': rsa(3072),
  'rsa-4096': rsa(4096),
  'ecdsa-p256': ecdsa({
    ...{ bits: 256, length: 32, hash: 'sha2-256' },
    ...{ vault: 'ecdsa-p256', awsSpec: 'ECC_NIST_P256', awsHash: 'SHA_256', kmipCurve: 'P-256' },
  }),
  'ecdsa-p384': ecdsa({
    ...{ bits: 384, length: 48, hash: 'sha2-384' },
    ...{ vault: 'ecdsa-p384', awsSpec: 'ECC_NIST_P384', awsHash: 'SHA_384', kmipCurve: 'P-384' },
  }),
  'ecdsa-p521': ecdsa({
    ...{ bits: 521, length: 66, hash: 'sha2-512' },
    ...{ vault: 'ecdsa-p521', awsSpec: 'ECC_NIST_P521', awsHash: 'SHA_512', kmipCurve: 'P-521' },
  }),
  'ecdsa-secp256k1': ecdsa({
    ...{ bits: 256, length: 32, hash: 'sha2-256' },
    ...{ awsSpec: 'ECC_SECG_P256K1', awsHash: 'SHA_256', kmipCurve: 'SECP256K1' },
  }),
  ed25519: {
    bits: 256,
    isAsymmetric: true,
    purposes: [signing('ED25519_SHA_512')],
    length: 32,
    form: 'seed',
    publicForm: 'raw',
    hashes: [],
    paddings: [],
    encodings: [],
    prehashed: 'none',
    vault: { type: 'ed25519' },
    awsSpec: 'ECC_NIST_EDWARDS25519',
    kmip: { algorithm: 'Ed25519', length: 256 },
  },
  'hmac-sha224': hmac(28, 'sha2-224'),
  'hmac-sha256': hmac(32, 'sha2-256'),
  'hmac-sha384': hmac(48, 'sha2-384'),
  'hmac-sha512': hmac(64, 'sha2-512'),
  'ml-dsa-44': mlDsa(44),
  'ml-dsa-65': mlDsa(65),
  'ml-dsa-87': mlDsa(87),
  secret: {
    ...symmetric,
    purposes: [{ usual: ['export'], possible: ['derive', 'export'] }],
    length: 32,
    importLengths: [1, 65536],
  },
};

/** Whether keys of the type are symmetric and encrypt messages. */
export function isCipher(type: KeyType): boolean {
  const { isAsymmetric, purposes } = keyTypeFacts[type];
  return !isAsymmetric && purposes[0].usual.includes('encrypt');
}

/** Uses of a new key of the type if none are asked for. */
export function usualUses(type: KeyType): readonly KeyUse[] {
  return keyTypeFacts[type].purposes[0].usual;
}

/** Why a key of the type cannot have these uses together; undefined if it can. */
export function usesProblem(type: KeyType, uses: readonly KeyUse[]): string | undefined {
  if (uses.length === 0) return 'expected at least one use';
  const { purposes } = keyTypeFacts[type];
  if (purposes.some(({ possible }) => uses.every((use) => possible.includes(use)))) return undefined;
  const impossible = uses.find((use) => !purposes.some(({ possible }) => possible.includes(use)));
  if (impossible !== undefined) return `a key of the type ${type} cannot ${impossible}`;
  const sets = purposes.map(({ possible }) => possible.join(', ')).join('; or ');
  return `a key of the type ${type} has one purpose: ${sets}`;
}

/** Uses that the public key alone is enough for; all other uses need the private key. */
const publicUses: readonly KeyUse[] = ['encrypt', 'verify', 'wrap'];

/** Whether a version of which only the public key is known can be put to this use. */
export function isPublicUse(type: KeyType, use: KeyUse): boolean {
  return keyTypeFacts[type].isAsymmetric && publicUses.includes(use);
}
