// Compression of the parts of a segment: zstd.
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** A little more than the ordinary block. */
const inflateChunk = 32 * 1024;

export function compressPart(part: Uint8Array): Uint8Array {
  return zstdCompressSync(part);
}

/** The part; its buffer may be larger than it is. */
export function inflatePart(compressed: Uint8Array): Uint8Array {
  return zstdDecompressSync(compressed, { chunkSize: inflateChunk });
}
