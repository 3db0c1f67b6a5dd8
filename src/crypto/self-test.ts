// Known answers for the primitives that a platform may do instead of noble: whichever is in use must reproduce them.
// One digest covers several short inputs, since noble is slowest on its first calls.
import { openXChaCha, sealXChaCha } from './aead.ts';
import { argon2id } from './argon2id.ts';
import { concatBytes, equalBytes, fromHex, toHex, utf8 } from './bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from './ed25519.ts';
import { sha256 } from './fast-hash.ts';
import { runningSha256 } from './hash.ts';
import { openGcm, sealGcm } from './managed/ciphers.ts';
import { digest, hmac, plainDigest } from './managed/digests.ts';
import { ecdsaSign, ecdsaVerify, pointToSpki } from './managed/ecdsa.ts';
import { mlDsaSignWith, mlDsaVerifyWith } from './managed/ml-dsa-keys.ts';
import { oaepDecrypt, oaepEncrypt, rsaSign, rsaVerify } from './managed/rsa.ts';
import { rsaKeyOfFactors, rsaPublicKey } from './managed/rsa-keys.ts';
import { mlDsaSign, mlDsaVerify } from './ml-dsa.ts';
import { type EcType, type HashName, native, type Primitives, type Sha3Name } from './primitives.ts';
import { systemRandom } from './random.ts';
import { decapsulateXWing, encapsulateXWing, xWingPublicKey } from './x-wing.ts';
import { publicFromPrivate, sharedSecret } from './x25519.ts';

const counted = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => at);
const key = counted(32);
const nonce = counted(24);
const lengths = [0, 65, 128, 300];

interface KnownAnswer {
  readonly of: string;
  /** Hex. */
  readonly answer: string;
  /** Tested only if the platform has this primitive: noble either lacks it, or is much too slow at first. */
  readonly ifPlatformHas?: keyof Primitives;
  run(): Uint8Array;
}

const hex = (text: string): Uint8Array => fromHex(text) ?? new Uint8Array();
const sampleKey = hex('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721');
const samplePublicKey = hex(
  '0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299',
);
const sampleSignature = hex(
  '3046022100efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716022100f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
);

const hashNames: readonly HashName[] = ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'];

const sha3Names: readonly Sha3Name[] = ['sha3-224', 'sha3-256', 'sha3-384', 'sha3-512'];

/** Factors of an RSA key of 2048 bits that is used for nothing else. */
const sampleFactors = [
  0xd1e879ceaf9408243ccc61b681118c2e07ddd7aef9b10de984247b6c4662cce88099c027cd954748485bfbc4ba7b6613124265a2536792b2e592bade72b8117df848646edf16f72480c2a0d612b301ca6a0ce5d0c4c94f6a5faaa267e1d5b5c195ad95b373148ba25543bd276ea3ba3af379271785c3cae384c77759529383b7n,
  0xc6c1c4cd39db52a3b556428e517545a91a8ee18f19995c0de723b9864abeb863dc509c6452b46c3371b94b0386db0203c43b8626a3e1be747e1fba2b45c0280c4b1bce31a5874b01c68bee0d43ec509955c92851cde2a0d439cca614d6e383160634e7d8614fb3fbfc720aa0afecfea88729fc8a2f836917f929b25450c32ccfn,
] as const;

/** Tests that take noble a few milliseconds on the first run. */
const quickAnswers: readonly KnownAnswer[] = [
  {
    of: 'SHA-256',
    answer: 'b3e208d4fcc4c8e0db74d85bbac48be0ca153a068b9554f0bf349b6bffc3faf3',
    run: () => sha256(concatBytes(...lengths.map((length) => sha256(counted(length))))),
  },
  {
    of: 'SHA-256 in pieces',
    answer: 'd4f06e16e0873cbb6d798e2830c9a7e46ded58c6ee260c77ee6220148946631a',
    run() {
      const running = runningSha256();
      for (const length of lengths) running.update(counted(length));
      return running.digest();
    },
  },
  {
    of: 'SHA-2',
    answer: '6ab1457bdebc283c50f1dc4ec035b61a69f31226cd41e74bb2302c6b5a7a4eb7',
    run: () => sha256(concatBytes(...hashNames.flatMap((hash) => lengths.map((n) => digest(hash, counted(n)))))),
  },
  {
    of: 'HMAC',
    answer: '815548e23c71232985d723c0abd1b80d89b84f1db60ad26c466ada963b02d37f',
    run: () => sha256(concatBytes(...hashNames.flatMap((hash) => lengths.map((n) => hmac(hash, key, counted(n)))))),
  },
  {
    of: 'XChaCha20-Poly1305',
    answer: '20cb4d9a7fd11ef7fca7fd16e0c4fcbe3eeb6f87023570699e4e688f1dfb76d4',
    run: () => sha256(concatBytes(...lengths.map(sealedAndOpened))),
  },
];

/** Tests that take noble some ten milliseconds on the first run. */
const costlyAnswers: readonly KnownAnswer[] = [
  {
    of: 'SHA-3',
    answer: '436e978acb0386a1e48f01e5c05e415d210139fac84b3c91379d914667c06d72',
    run: () => sha256(concatBytes(...sha3Names.flatMap((hash) => lengths.map((n) => plainDigest(hash, counted(n)))))),
  },
  {
    of: 'AES-256-GCM',
    answer: '2c62b2a474d04f7bebde36a335a8947d0f1f6a934add845d4960d45f2ed0aedd',
    run: () => sha256(concatBytes(...lengths.map((length) => gcmSealedAndOpened(key, length)))),
  },
  {
    of: 'AES-128-GCM',
    answer: '0ff1bd3056d9cde0ee284459b6d14ac329a274ec257148bbef49d9838c920bae',
    run: () => sha256(concatBytes(...lengths.map((length) => gcmSealedAndOpened(key.subarray(0, 16), length)))),
  },
  {
    of: 'RSA',
    ifPlatformHas: 'rsa',
    answer: 'be373409ade0f142294c5f17f1ba54fa5b7b9f18b223e4df58d1475f4238857b',
    run: rsaSignedAndOpened,
  },
  {
    of: 'Argon2id',
    answer: '8ca4e3d3fceded62fac95118efe6d0b86242484b03163e5d8a47d401917a4f4a',
    run: () => argon2id(utf8('secret'), nonce, { m: 8, t: 1, p: 1 }, 32),
  },
];

/**
 * Tests that take noble longest: the first signature builds its tables, some 35 ms, and X-Wing's parts take as long at
 * first.
 */
const slowAnswers: readonly KnownAnswer[] = [
  {
    of: 'X25519',
    answer: 'b671df13b7c843825318ba05ba28fea30f02eda11da6c19ec59ff5f94872d33b',
    run() {
      const publicKey = publicFromPrivate(key);
      const shared = sharedSecret(key, publicKey);
      const isRefused = sharedSecret(key, new Uint8Array(32)) === undefined;
      return shared && isRefused ? sha256(concatBytes(publicKey, shared)) : new Uint8Array();
    },
  },
  {
    of: 'X-Wing',
    answer: 'dece72f2191359b92e3ef06378ae82d44bb72e28e83f4e14f9dccb350f6d67f0',
    run() {
      const publicKey = xWingPublicKey(key);
      const { enc, shared } = encapsulateXWing(publicKey, counted);
      const opened = decapsulateXWing(key, enc);
      // An altered ciphertext yields a different secret, always the same for one key.
      enc[0] = (enc[0] ?? 0) ^ 1;
      const other = decapsulateXWing(key, enc);
      const own = encapsulateXWing(publicKey, systemRandom);
      const ownOpened = decapsulateXWing(key, own.enc);
      const isOpened = opened && equalBytes(opened, shared) && ownOpened && equalBytes(ownOpened, own.shared);
      return isOpened && other ? sha256(concatBytes(publicKey, shared, other)) : new Uint8Array();
    },
  },
  {
    of: 'Ed25519 public keys',
    answer: '03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8',
    run: () => ed25519PublicKey(key),
  },
  {
    of: 'Ed25519 signatures',
    answer:
      'ca165c79e5c2e1ea87995eb039787c1d38648ac61712a292c2a24184cbdcb1c5' +
      '3bd6f9bea5657cdaca2fab08d8703a7efd48e743abcbd734fa21693d8996c408',
    run: () => ed25519Sign(key, counted(254)),
  },
  {
    of: 'Ed25519 verification',
    // Results: the signature above; its message altered; its R altered; one that only a key of small order validates.
    answer: '01000000',
    run() {
      const [publicKey, message] = [ed25519PublicKey(key), counted(254)];
      const signature = ed25519Sign(key, message);
      const neutral = counted(32).map((at) => (at === 0 ? 1 : 0));
      return Uint8Array.of(
        Number(ed25519Verify(publicKey, message, signature)),
        Number(ed25519Verify(publicKey, message.toReversed(), signature)),
        Number(ed25519Verify(publicKey, message, signature.with(0, (signature[0] ?? 0) ^ 1))),
        Number(ed25519Verify(neutral, message, concatBytes(neutral, new Uint8Array(32)))),
      );
    },
  },
  {
    of: 'ECDSA with other curves',
    ifPlatformHas: 'ecdsaVerify',
    // For each curve: noble's signature by RFC 6979; the same of another message; a signature made here.
    answer: '010001010001010001',
    run: () => concatBytes(...sampleSignatures.map(ecdsaChecked)),
  },
  {
    of: 'ML-DSA',
    ifPlatformHas: 'mlDsaVerify',
    // Results: noble's signature; the same of another message; a signature made here, as noble and the platform see it.
    answer: '01000101',
    run() {
      const message = utf8('sample');
      const { signature, spki } = mlDsaSign(key, message);
      const own = mlDsaSignWith('ml-dsa-65', key, { bytes: message, isDigest: false });
      const isValid = (bytes: Uint8Array, made: Uint8Array): boolean =>
        mlDsaVerifyWith('ml-dsa-65', spki, { bytes, isDigest: false }, made);
      return Uint8Array.of(
        Number(isValid(message, signature)),
        Number(isValid(utf8('simple'), signature)),
        Number(mlDsaVerify(spki, message, own)),
        Number(isValid(message, own)),
      );
    },
  },
  {
    of: 'ECDSA with P-256',
    // Results: RFC 6979 §A.2.5 (SHA-256, "sample"); the same altered; a signature made here.
    answer: '010001',
    run() {
      const message = utf8('sample');
      const spki = pointToSpki('ecdsa-p256', samplePublicKey);
      const signed = { bytes: message, isDigest: false };
      const verifies = (bytes: Uint8Array, signature: Uint8Array): number =>
        Number(ecdsaVerify('ecdsa-p256', spki, { bytes, isDigest: false }, 'sha2-256', signature));
      const own = ecdsaSign('ecdsa-p256', sampleKey, signed, 'sha2-256');
      return Uint8Array.of(
        verifies(message, sampleSignature),
        verifies(utf8('simple'), sampleSignature),
        verifies(message, own),
      );
    },
  },
];

/** Signatures of "sample" by the key that counts up from 0. */
const sampleSignatures: readonly (readonly [EcType, length: number, HashName, point: string, signature: string])[] = [
  [
    'ecdsa-p384',
    48,
    'sha2-384',
    '04e62a3a94e407b16bff82947b56a30380269da64a130371cb641501d9b90b226a93d2e8c059b26530f025bd8d83d55613cc96e9' +
      '94d700581e2d9785cb2974e5e0a0937e71f09c7b51178b40cadb28e1444e387b9c2b967add040b087157c39836',
    '306402301b3d6396ec4de7167e8639e569663ba6fcb6a6b517864263bbba16029cc889209814349cd1f6882f89464c4e06f80405' +
      '0230241d2655e4eeb987dd9a332e3df0b427ea9a19c16d7603c86831c686a77fb13247ca8d69355f334b0facd3eb759bcd9b',
  ],
  [
    'ecdsa-p521',
    66,
    'sha2-512',
    '040126f7e6a6df7087c94b0c1b0b194a85669ee810fda2eae12ca64160ded6b26c46475ebedcceae4011da8edd5c6394e0b0bd42' +
      '09a15227f2574656256854a7eb6e4601b9a248cd4017ddd4c2f6cc27cf0a307a1838ee9237913d8a501760b7a638c9573b9a0a08' +
      'ced30befa7a3c0938bbaaa770a7bc37dd175957cb3a45ebde3c9826eeb',
    '308188024201b9459fc41f9e0eb19563ef20cb4f7b147dc5525e52b1e36292b8359eff5a7742161341858f543f8bdc828d3b17462b9a07ea' +
      '8effac437c0926c1963b18c251afbd02420089564f476cb07de017473366cf45e1f21560b234c1d2d82690f1a24b866c6ed35138ec' +
      'fcbafb1d57f8d528614025b6f5c3f5c0508e3f9b288decf72cd5f7c22604',
  ],
  [
    'ecdsa-secp256k1',
    32,
    'sha2-256',
    '046d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2487e6222a6664e079c8edf7518defd562dbeda' +
      '1e7593dfd7f0be285880a24dab',
    '3045022100ab19e01a6a0fd3659aff003ca3d16e21209d59ccca38898462c45bdb16e358100220' +
      '415179f0dbc834137b25c13a4b46b99e2a2cd3a297a7d98ff938213b10486740',
  ],
];

function ecdsaChecked([type, length, hash, point, signature]: (typeof sampleSignatures)[number]): Uint8Array {
  const scalar = counted(length);
  const publicKey = pointToSpki(type, hex(point));
  const isValid = (text: string, made: Uint8Array): boolean =>
    ecdsaVerify(type, publicKey, { bytes: utf8(text), isDigest: false }, hash, made);
  const own = ecdsaSign(type, scalar, { bytes: utf8('sample'), isDigest: false }, hash);
  return Uint8Array.of(
    Number(isValid('sample', hex(signature))),
    Number(isValid('simple', hex(signature))),
    Number(isValid('sample', own)),
  );
}

/** Digest of a signature with PKCS #1 v1.5, provided that PSS and OAEP undo what they did, and nothing else does. */
function rsaSignedAndOpened(): Uint8Array {
  const privateKey = rsaKeyOfFactors(...sampleFactors);
  const publicKey = rsaPublicKey(privateKey);
  const message = utf8('sample');
  const input = { bytes: message, isDigest: false };
  const [pkcs1, pss] = [
    { padding: 'pkcs1v15', hash: 'sha2-256' } as const,
    { padding: 'pss', hash: 'sha2-256' } as const,
  ];
  const signature = rsaSign('rsa-2048', privateKey, input, pkcs1, systemRandom);
  const salted = rsaSign('rsa-2048', privateKey, input, pss, systemRandom);
  const sealed = oaepEncrypt('rsa-2048', publicKey, 'sha2-256', message, nonce);
  const opened = oaepDecrypt('rsa-2048', privateKey, 'sha2-256', sealed, nonce);
  const isRight =
    rsaVerify('rsa-2048', publicKey, input, pkcs1, signature) &&
    rsaVerify('rsa-2048', publicKey, input, pss, salted) &&
    !rsaVerify('rsa-2048', publicKey, input, pss, signature) &&
    opened !== undefined &&
    equalBytes(opened, message) &&
    oaepDecrypt('rsa-2048', privateKey, 'sha2-256', sealed, key) === undefined;
  return isRight ? sha256(signature) : new Uint8Array();
}

/** The sealed bytes, provided they open to the plaintext and do not open with another nonce; else empty. */
function sealedAndOpened(length: number): Uint8Array {
  const plaintext = counted(length);
  const sealed = sealXChaCha(key, nonce, plaintext, nonce);
  const opened = openXChaCha(key, nonce, sealed, nonce);
  const isRefused = openXChaCha(key, nonce.toReversed(), sealed, nonce) === undefined;
  return opened && equalBytes(opened, plaintext) && isRefused ? sealed : new Uint8Array();
}

function gcmSealedAndOpened(key: Uint8Array, length: number): Uint8Array {
  const plaintext = counted(length);
  const short = nonce.subarray(0, 12);
  const sealed = sealGcm(key, short, plaintext, nonce);
  const opened = openGcm(key, short, sealed, nonce);
  const isRefused = openGcm(key, short.toReversed(), sealed, nonce) === undefined;
  return opened && equalBytes(opened, plaintext) && isRefused ? sealed : new Uint8Array();
}

const answers = { quick: quickAnswers, costly: costlyAnswers, slow: slowAnswers };

export type SelfTests = keyof typeof answers;

/** Describes a fault of a primitive in use in this thread; undefined if there is none. */
type SelfTest = () => string | undefined;

/** One test per primitive. */
export function selfTests(which: SelfTests): readonly SelfTest[] {
  return answers[which].map(({ of, answer, ifPlatformHas, run }) => () => {
    if (ifPlatformHas !== undefined && !native()[ifPlatformHas]) return undefined;
    try {
      return toHex(run()) === answer ? undefined : `${of}: another answer than the known one`;
    } catch (error) {
      return `${of}: ${error instanceof Error ? error.message : String(error)}`;
    }
  });
}

/** Runs them all; returns the first fault, if any. */
export function selfTest(which: SelfTests): string | undefined {
  for (const test of selfTests(which)) {
    const problem = test();
    if (problem !== undefined) return problem;
  }
  return undefined;
}
