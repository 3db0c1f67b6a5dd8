// Compression of the parts of a segment, with zstd.
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** A little more than an ordinary block. */
const inflateChunk = 32 * 1024;

export function compressPart(part: Uint8Array): Uint8Array {
  return zstdCompressSync(part);
}

/** The decompressed part; its underlying buffer may be larger. */
export function inflatePart(compressed: Uint8Array): Uint8Array {
  return zstdDecompressSync(compressed, { chunkSize: inflateChunk });
}
