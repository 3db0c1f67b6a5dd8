// AES and ChaCha20-Poly1305 as other systems' protocols use them: with an initialization vector beside the message, in
// modes that authenticate nothing too. New formats of our own have none of these; see messages.ts.
import { aeskw, cbc, ctr, ecb, gcm } from '@noble/ciphers/aes.js';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { KmsError } from '../../errors.ts';
import { equalBytes } from '../bytes.ts';
import { native } from '../primitives.ts';

export type BlockMode = 'cbc' | 'ecb' | 'ctr' | 'gcm' | 'chacha20-poly1305';

/** Bytes to fill the last block: none, PKCS #7, or zeros with their number behind them (ANSI X9.23). */
export type BlockPadding = 'none' | 'pkcs7' | 'x923';

const blockLength = 16;
const wholeTag = 16;

/** Usual bytes of an initialization vector. */
export const ivLengths: Readonly<Record<BlockMode, number>> = {
  cbc: blockLength,
  ecb: 0,
  ctr: blockLength,
  gcm: 12,
  'chacha20-poly1305': 12,
};

export function isAuthenticated(mode: BlockMode): boolean {
  return mode === 'gcm' || mode === 'chacha20-poly1305';
}

interface BlockCipher {
  readonly mode: BlockMode;
  readonly key: Uint8Array;
  readonly iv: Uint8Array;
  readonly padding: BlockPadding;
  readonly associated: Uint8Array;
  /** Bytes of the tag, for modes that have one: 12 to 16. */
  readonly tagLength: number;
}

interface Sealed {
  readonly bytes: Uint8Array;
  /** Empty for a mode without one. */
  readonly tag: Uint8Array;
}

/** Throws `invalid` for a message, vector or tag of a length that does not fit. */
export function blockEncrypt(cipher: BlockCipher, plaintext: Uint8Array): Sealed {
  const { mode, key, iv, padding } = cipher;
  check(cipher);
  if (!isAuthenticated(mode)) {
    const padded = mode === 'ctr' ? plaintext : pad(plaintext, padding);
    return { bytes: plain(mode, key, iv).encrypt(padded), tag: new Uint8Array() };
  }
  const whole = seal(cipher, plaintext);
  const end = whole.length - wholeTag;
  return { bytes: whole.slice(0, end), tag: whole.slice(end, end + cipher.tagLength) };
}

/** The message; undefined if tag or padding is wrong. Throws `invalid` as above. */
export function blockDecrypt(cipher: BlockCipher, { bytes, tag }: Sealed): Uint8Array | undefined {
  const { mode, key, iv, padding } = cipher;
  check(cipher);
  if (isAuthenticated(mode)) return open(cipher, bytes, tag);
  if (mode === 'ctr') return ctr(key, iv).decrypt(bytes);
  if (bytes.length % blockLength !== 0) return undefined;
  if (bytes.length === 0) return padding === 'none' ? bytes : undefined;
  return unpad(plain(mode, key, iv).decrypt(bytes), padding);
}

function check({ mode, iv, tagLength }: BlockCipher): void {
  const isFixed = mode !== 'gcm';
  if (isFixed ? iv.length !== ivLengths[mode] : iv.length < 8 || iv.length > 128) {
    throw new KmsError('invalid', `expected an initialization vector of ${ivLengths[mode]} bytes, got ${iv.length}`);
  }
  const least = mode === 'gcm' ? 12 : wholeTag;
  if (isAuthenticated(mode) && (tagLength < least || tagLength > wholeTag)) {
    throw new KmsError('invalid', `expected a tag of ${least} to ${wholeTag} bytes, got ${tagLength}`);
  }
}

/** The cipher without any padding of its own. */
function plain(mode: BlockMode, key: Uint8Array, iv: Uint8Array) {
  if (mode === 'ecb') return ecb(key, { disablePadding: true });
  return mode === 'ctr' ? ctr(key, iv) : cbc(key, iv, { disablePadding: true });
}

function pad(bytes: Uint8Array, padding: BlockPadding): Uint8Array {
  if (padding === 'none') {
    if (bytes.length % blockLength === 0) return bytes;
    throw new KmsError('invalid', `expected a multiple of ${blockLength} bytes, or a padding, got ${bytes.length}`);
  }
  const count = blockLength - (bytes.length % blockLength);
  const padded = new Uint8Array(bytes.length + count).fill(padding === 'pkcs7' ? count : 0);
  padded.set(bytes);
  padded[padded.length - 1] = count;
  return padded;
}

/** Looks at every byte of the last block, whatever is wrong. */
function unpad(bytes: Uint8Array, padding: BlockPadding): Uint8Array | undefined {
  if (padding === 'none') return bytes;
  const count = bytes.at(-1) ?? 0;
  let wrong = count < 1 || count > blockLength ? 1 : 0;
  for (let back = 2; back <= blockLength; back++) {
    const isPadding = back <= count;
    const expected = padding === 'pkcs7' ? count : 0;
    if (isPadding && bytes.at(-back) !== expected) wrong = 1;
  }
  return wrong === 0 ? bytes.subarray(0, bytes.length - count) : undefined;
}

function seal({ mode, key, iv, associated }: BlockCipher, plaintext: Uint8Array): Uint8Array {
  if (mode === 'chacha20-poly1305') {
    return (
      native().sealChaCha?.(key, iv, plaintext, associated) ?? chacha20poly1305(key, iv, associated).encrypt(plaintext)
    );
  }
  const fast = iv.length === 12 && key.length !== 24 ? native().sealGcm : undefined;
  return fast?.(key, iv, plaintext, associated) ?? gcm(key, iv, associated).encrypt(plaintext);
}

function open(cipher: BlockCipher, bytes: Uint8Array, tag: Uint8Array): Uint8Array | undefined {
  if (tag.length !== cipher.tagLength) return undefined;
  // GCM's encryption is a key stream, so encrypting the ciphertext gives the message; its tag is then compared. A short
  // tag is the beginning of a whole one.
  const opened = seal({ ...cipher, associated: new Uint8Array() }, bytes).subarray(0, bytes.length);
  const right = seal(cipher, opened).subarray(bytes.length, bytes.length + tag.length);
  if (equalBytes(right, tag)) return opened;
  opened.fill(0);
  return undefined;
}

/** AES key wrap (RFC 3394): a multiple of 8 bytes, 16 at least; the result is 8 bytes longer. Throws `invalid`. */
export function wrapKw(kek: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length < 16 || bytes.length % 8 !== 0) {
    throw new KmsError('invalid', `expected a multiple of 8 bytes to wrap, 16 at least, got ${bytes.length}`);
  }
  return aeskw(kek).encrypt(bytes);
}
