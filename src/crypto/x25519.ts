// X25519 keys (RFC 7748): making them, their DER and PEM forms (RFC 8410), and parsing keys that people and programs
// hand in.
import { pow } from '@noble/curves/abstract/modular.js';
import { montgomery } from '@noble/curves/abstract/montgomery.js';
import { concatBytes, fromBase64 } from './bytes.ts';
import { isPem, pemBlock, toPem } from './pem.ts';
import { native } from './primitives.ts';

/** RFC 8410 §4: SubjectPublicKeyInfo of id-X25519 up to the 32 key bytes. */
const spkiPrefix = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00);
/** RFC 8410 §7: PrivateKeyInfo of id-X25519 up to the 32 key bytes. */
const pkcs8Prefix = Uint8Array.of(
  ...[0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20],
);

/** The prime of the field, 2^255 - 19. */
const p = 2n ** 255n - 19n;

/**
 * RFC 7748 §5 with the Montgomery ladder only: the `x25519` of @noble/curves uses the Edwards curve for multiples of
 * the base point, which is a quarter of the client library's size and 17 ms of tables at the first use.
 */
const x25519 = montgomery({
  P: p,
  type: 'x25519',
  powPminus2: (x) => pow(x, p - 2n, p),
  adjustScalarBytes(bytes: Uint8Array) {
    bytes[0] = (bytes[0] ?? 0) & 0b1111_1000;
    bytes[31] = ((bytes[31] ?? 0) & 0b0111_1111) | 0b0100_0000;
    return bytes;
  },
});

interface KeyPair {
  /** 32 bytes, secret. */
  readonly privateKey: Uint8Array;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** A new key pair from 32 bytes of `random`. */
export function generateX25519(random: (length: number) => Uint8Array): KeyPair {
  const privateKey = random(32);
  return { privateKey, publicKey: publicFromPrivate(privateKey) };
}

/** The public key of 32 private bytes. */
export function publicFromPrivate(privateKey: Uint8Array): Uint8Array {
  return native().x25519PublicKey?.(privateKey) ?? x25519.getPublicKey(privateKey);
}

/** The 32-byte shared secret; undefined when the public key is a low-order point (RFC 7748 §6.1). */
export function sharedSecret(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined {
  const { x25519Shared } = native();
  if (x25519Shared) return x25519Shared(privateKey, publicKey);
  try {
    return x25519.getSharedSecret(privateKey, publicKey);
  } catch {
    return undefined;
  }
}

/** SubjectPublicKeyInfo, DER. */
export function publicKeyToSpki(raw32: Uint8Array): Uint8Array {
  return concatBytes(spkiPrefix, raw32);
}

/** PKCS#8 PrivateKeyInfo, DER. */
export function privateKeyToPkcs8(raw32: Uint8Array): Uint8Array {
  return concatBytes(pkcs8Prefix, raw32);
}

/** PEM of a PKCS#8 private key, with a newline at its end. */
export function pkcs8ToPem(der: Uint8Array): string {
  return toPem('PRIVATE KEY', der);
}

/**
 * The 32 raw bytes of a public key given as base64 SPKI DER, PEM, or base64 of the raw bytes. Undefined for anything
 * else: another kind of key, a low-order point, or an encoding that no key pair yields (u of 2^255 - 19 or more), since
 * data sealed to it could not be opened. Throws `invalid` for PEM with two public keys.
 */
export function parsePublicKey(text: string): Uint8Array | undefined {
  const raw = parseKey(text, 'PUBLIC KEY', spkiPrefix);
  return raw && isUsablePublicKey(raw) ? raw : undefined;
}

/**
 * The 32 raw bytes of a private key given as PEM, base64 PKCS#8 DER, or base64 of the raw bytes. Undefined for anything
 * else. Throws `invalid` for PEM with two private keys.
 */
export function parsePrivateKey(text: string): Uint8Array | undefined {
  return parseKey(text, 'PRIVATE KEY', pkcs8Prefix);
}

/** Whether data can be sealed to this key and opened again: 32 bytes, canonical, not of low order. */
export function isUsablePublicKey(raw: Uint8Array): boolean {
  if (raw.length !== 32 || !isCanonical(raw)) return false;
  // Any clamped scalar is a multiple of 8, so it takes a low-order point to zero.
  return sharedSecret(new Uint8Array(32).fill(1), raw) !== undefined;
}

/** Little-endian u below 2^255 - 19. */
function isCanonical(raw: Uint8Array): boolean {
  if ((raw[31] ?? 0) !== 0x7f) return (raw[31] ?? 0) < 0x7f;
  for (let i = 30; i > 0; i--) if (raw[i] !== 0xff) return true;
  return (raw[0] ?? 0) < 0xed;
}

function parseKey(text: string, label: 'PUBLIC KEY' | 'PRIVATE KEY', prefix: Uint8Array): Uint8Array | undefined {
  const bytes = keyTextBytes(text, label);
  if (bytes?.length === 32 && !isPem(text)) return bytes;
  return bytes && afterPrefix(bytes, prefix, 32);
}

/** The `length` bytes after `prefix`; undefined if prefix or length differs. */
export function afterPrefix(bytes: Uint8Array, prefix: Uint8Array, length: number): Uint8Array | undefined {
  if (bytes.length !== prefix.length + length) return undefined;
  for (let i = 0; i < prefix.length; i++) if (bytes[i] !== prefix[i]) return undefined;
  return bytes.slice(prefix.length);
}

/**
 * The bytes of a PEM block with this label, or of plain base64; undefined for any other text. Throws `invalid` for two
 * such blocks.
 */
export function keyTextBytes(text: string, label: 'PUBLIC KEY' | 'PRIVATE KEY'): Uint8Array | undefined {
  return isPem(text) ? pemBlock(text, label) : fromBase64(text.trim());
}
