// Known answers for the primitives that a platform may do instead of noble: whichever is in use must reproduce them.
// One digest covers several short inputs, since noble is slowest on its first calls.
import { openXChaCha, sealXChaCha } from './aead.ts';
import { argon2id } from './argon2id.ts';
import { concatBytes, equalBytes, fromHex, toHex, utf8 } from './bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from './ed25519.ts';
import { sha256 } from './fast-hash.ts';
import { runningSha256 } from './hash.ts';
import { systemRandom } from './random.ts';
import { openGcm, p256Sign, p256Verify, sealGcm } from './transit.ts';
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
    of: 'XChaCha20-Poly1305',
    answer: '20cb4d9a7fd11ef7fca7fd16e0c4fcbe3eeb6f87023570699e4e688f1dfb76d4',
    run: () => sha256(concatBytes(...lengths.map(sealedAndOpened))),
  },
];

/** Tests that take noble some ten milliseconds on the first run. */
const costlyAnswers: readonly KnownAnswer[] = [
  {
    of: 'AES-256-GCM',
    answer: '2c62b2a474d04f7bebde36a335a8947d0f1f6a934add845d4960d45f2ed0aedd',
    run: () => sha256(concatBytes(...lengths.map(gcmSealedAndOpened))),
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
    of: 'ECDSA with P-256',
    // Results: RFC 6979 §A.2.5 (SHA-256, "sample"); the same altered; a signature made here.
    answer: '010001',
    run() {
      const message = utf8('sample');
      const own = p256Sign(sampleKey, message, 'sha2-256');
      return Uint8Array.of(
        Number(p256Verify(samplePublicKey, message, 'sha2-256', sampleSignature)),
        Number(p256Verify(samplePublicKey, utf8('simple'), 'sha2-256', sampleSignature)),
        Number(p256Verify(samplePublicKey, message, 'sha2-256', own)),
      );
    },
  },
];

/** The sealed bytes, provided they open to the plaintext and do not open with another nonce; else empty. */
function sealedAndOpened(length: number): Uint8Array {
  const plaintext = counted(length);
  const sealed = sealXChaCha(key, nonce, plaintext, nonce);
  const opened = openXChaCha(key, nonce, sealed, nonce);
  const isRefused = openXChaCha(key, nonce.toReversed(), sealed, nonce) === undefined;
  return opened && equalBytes(opened, plaintext) && isRefused ? sealed : new Uint8Array();
}

function gcmSealedAndOpened(length: number): Uint8Array {
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
  return answers[which].map(({ of, answer, run }) => () => {
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
