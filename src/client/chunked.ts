// C2SP chunked encryption (c2sp.org/chunked-encryption) over streams of any length in constant memory: salt,
// commitment, and chunks of 16 KiB, each sealed separately. Blocks of chunks are processed ahead of the reader.
import { type BulkGcm, bulkGcm } from '../crypto/aead.ts';
import { concatBytes, equalBytes } from '../crypto/bytes.ts';
import {
  chunkLength,
  chunkNonce,
  commitmentLength,
  deriveChunkKeys,
  saltLength,
  tagLength,
} from '../crypto/chunk-keys.ts';
import { ahead, type Block, type ByteSource, byteReader, inBlocks } from './byte-streams.ts';
import { fileFault } from './file-format.ts';

/** Four concurrent blocks of 256 KiB keep the platform's crypto threads busy; more would only cost memory. */
const chunksPerBlock = 16;
const blocksUnderWay = 4;
const sealedChunkLength = chunkLength + tagLength;

/** Piece length at which a source is encrypted without copying its pieces first. */
export const plainBlockLength = chunksPerBlock * chunkLength;
const sealedBlockLength = chunksPerBlock * sealedChunkLength;

interface EncryptOptions {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Associated bytes that are not in the stream but must be the same to decrypt it. */
  readonly context: Uint8Array;
  readonly random: (length: number) => Uint8Array;
}

/** Encrypts `source`. Throws `invalid` unless the key has 32 bytes. */
export async function* encryptChunks(
  source: ByteSource,
  { key, context, random }: EncryptOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const reader = byteReader(source);
  let finished = false;
  try {
    const salt = random(saltLength);
    const keys = await deriveChunkKeys(key, context, salt);
    const cipher = await bulkGcm(keys.key);
    yield concatBytes(salt, keys.commitment);
    yield* ahead(inBlocks(reader, plainBlockLength), blocksUnderWay, (block, index) =>
      sealBlock(cipher, keys.baseNonce, block, index * chunksPerBlock),
    );
    finished = true;
  } finally {
    if (!finished) reader.giveUp();
  }
}

interface DecryptOptions {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Context that the stream was encrypted with. */
  readonly context: Uint8Array;
}

/**
 * Decrypts the stream. Every byte that comes out is authentic and in its place; only an end without an error proves
 * that nothing is missing. Throws `invalid` unless the key has 32 bytes, `corrupt` for another key or context and for a
 * stream that was altered, cut or extended.
 */
export async function* decryptChunks(
  source: ByteSource,
  { key, context }: DecryptOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const reader = byteReader(source);
  let finished = false;
  try {
    const salt = await reader.take(saltLength);
    const commitment = await reader.take(commitmentLength);
    if (commitment.length < commitmentLength) throw fileFault('cut');
    const keys = await deriveChunkKeys(key, context, salt);
    if (!equalBytes(keys.commitment, commitment)) throw fileFault('wrong-key');
    const cipher = await bulkGcm(keys.key);
    yield* ahead(inBlocks(reader, sealedBlockLength), blocksUnderWay, (block, index) =>
      openBlock(cipher, keys.baseNonce, block, index * chunksPerBlock),
    );
    finished = true;
  } finally {
    if (!finished) reader.giveUp();
  }
}

/**
 * Each chunk is sealed under the nonce of its index; the last block ends with the short chunk that ends the message.
 */
async function sealBlock(
  cipher: BulkGcm,
  baseNonce: Uint8Array,
  { bytes, last }: Block,
  firstChunk: number,
): Promise<Uint8Array> {
  const chunks = Math.floor(bytes.length / chunkLength) + (last ? 1 : 0);
  const output = new Uint8Array(bytes.length + chunks * tagLength);
  const work: Promise<void>[] = [];
  for (let i = 0; i < chunks; i++) {
    const plaintext = bytes.subarray(i * chunkLength, (i + 1) * chunkLength);
    const sealed = cipher.seal(chunkNonce(baseNonce, firstChunk + i), plaintext);
    work.push(sealed.then((chunk) => output.set(new Uint8Array(chunk), i * sealedChunkLength)));
  }
  await Promise.all(work);
  return output;
}

/** The plaintext of a block, once all its chunks are authenticated. */
async function openBlock(
  cipher: BulkGcm,
  baseNonce: Uint8Array,
  { bytes, last }: Block,
  firstChunk: number,
): Promise<Uint8Array> {
  // A full chunk never ends a message: if no short one follows, the end is missing.
  if (last && bytes.length % sealedChunkLength < tagLength) throw fileFault('cut');
  const chunks = Math.ceil(bytes.length / sealedChunkLength);
  const output = new Uint8Array(bytes.length - chunks * tagLength);
  const work: Promise<void>[] = [];
  for (let i = 0; i < chunks; i++) {
    const sealed = bytes.subarray(i * sealedChunkLength, (i + 1) * sealedChunkLength);
    const opened = cipher.open(chunkNonce(baseNonce, firstChunk + i), sealed);
    work.push(opened.then((chunk) => output.set(new Uint8Array(chunk), i * chunkLength)));
  }
  try {
    await Promise.all(work);
  } catch (cause) {
    throw fileFault('altered', cause);
  }
  return output;
}
