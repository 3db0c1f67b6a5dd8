// The key schedule of C2SP chunked encryption (c2sp.org/chunked-encryption) with AES-256-GCM and SHA-512,
// "Cobblestone-256": it derives a stream's key, nonces and commitment. The client reads and writes the streams.
import { KmsError } from '../errors.ts';
import { unshared, webCrypto } from './aead.ts';
import { concatBytes, utf8 } from './bytes.ts';

export const saltLength = 24;
export const commitmentLength = 32;
/** Plaintext bytes of every chunk but the last, which is always shorter and may be empty. */
export const chunkLength = 16384;
export const tagLength = 16;
/** Maximum number of chunks in one message. */
export const maxChunks = 2 ** 38;

const label = utf8('c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0');

interface ChunkKeys {
  /** AES-256, secret. */
  readonly key: Uint8Array;
  /** 12 bytes. */
  readonly baseNonce: Uint8Array;
  /** 32 bytes stored in the stream, which commit to this key, context and salt. */
  readonly commitment: Uint8Array;
}

/** Derives the keys of one message. Throws `invalid` for a key that is not 32 bytes long. */
export async function deriveChunkKeys(key: Uint8Array, context: Uint8Array, salt: Uint8Array): Promise<ChunkKeys> {
  if (key.length !== 32) throw new KmsError('invalid', `expected a key of 32 bytes, got ${key.length}`);
  if (salt.length !== saltLength) throw new KmsError('invalid', `expected a salt of 24 bytes, got ${salt.length}`);
  const okm = await hkdfExpandSha512(key, concatBytes(label, salt, context), 32 + 12 + commitmentLength);
  return { key: okm.slice(0, 32), baseNonce: okm.slice(32, 44), commitment: okm.slice(44) };
}

/** The nonce of chunk `index`: the base nonce with the index, big-endian and right-aligned, XORed in. */
export function chunkNonce(baseNonce: Uint8Array, index: number): Uint8Array {
  if (index >= maxChunks) throw new KmsError('too-large', 'expected at most 2^38 chunks (4 PiB) in one stream');
  const nonce = baseNonce.slice();
  const view = new DataView(nonce.buffer);
  view.setUint32(4, view.getUint32(4) ^ Math.floor(index / 0x1_0000_0000));
  view.setUint32(8, view.getUint32(8) ^ (index >>> 0));
  return nonce;
}

/**
 * HKDF-Expand with SHA-512. Unlike the library's it takes a `prk` shorter than the hash (RFC 5869 §2.3 asks for the
 * hash length), because c2sp.org/chunked-encryption expands its 32-byte key directly. It uses Web Crypto, which every
 * reader of such a stream needs anyway: noble's SHA-512 would add 3 kB to the client library.
 */
export async function hkdfExpandSha512(prk: Uint8Array, info: Uint8Array, length: number): Promise<Uint8Array> {
  const subtle = webCrypto();
  const key = await subtle.importKey('raw', unshared(prk), { name: 'HMAC', hash: 'SHA-512' }, false, ['sign']);
  const blocks = Math.ceil(length / 64);
  const output = new Uint8Array(blocks * 64);
  let previous: Uint8Array = new Uint8Array(0);
  for (let block = 1; block <= blocks; block++) {
    const message = concatBytes(previous, info, Uint8Array.of(block));
    previous = new Uint8Array(await subtle.sign('HMAC', key, message));
    output.set(previous, (block - 1) * 64);
  }
  return output.subarray(0, length);
}
