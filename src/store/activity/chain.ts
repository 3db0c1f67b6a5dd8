// The hash chain over the lines of the log: hash n = SHA-256(hash n-1 || UTF-8 of line n), hash 0 = 32 zero bytes.
import { sha256 } from '../../crypto/hash.ts';

export const hashLength = 32;
const encoder = new TextEncoder();
let scratch = new Uint8Array(4096);

/** The hash before the first record. */
export function genesisHash(): Uint8Array {
  return new Uint8Array(hashLength);
}

/** The hash of a line, as text or as its UTF-8, that follows the 32-byte hash `previous`. */
export function chainHash(previous: Uint8Array, line: string | Uint8Array): Uint8Array {
  // UTF-8 takes at most 3 bytes for a UTF-16 code unit. One buffer of the module saves two allocations a record.
  const room = hashLength + line.length * 3;
  if (scratch.length < room) scratch = new Uint8Array(room * 2);
  scratch.set(previous);
  return sha256(scratch.subarray(0, hashLength + placed(line)));
}

/** Puts the line behind the place of the hash; its length in bytes. */
function placed(line: string | Uint8Array): number {
  if (typeof line === 'string') return encoder.encodeInto(line, scratch.subarray(hashLength)).written;
  scratch.set(line, hashLength);
  return line.length;
}
