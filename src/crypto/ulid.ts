// ULIDs: 48 bits of epoch milliseconds and 80 random bits, which sort in the order they were made, and the prefixed ids
// made from them (`ring_01h…`). Text is lower-case Crockford base32 and canonical: one text per value.
import { KmsError } from '../errors.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** Two characters for every value of ten bits. */
const pairs = Array.from({ length: 1024 }, (_, n) => alphabet.charAt(n >>> 5) + alphabet.charAt(n & 31));

/** Value of each lower-case character code; 255 if it is not a digit. */
const values = new Uint8Array(128).fill(255);
for (let n = 0; n < 32; n++) values[alphabet.charCodeAt(n)] = n;

interface UlidSource {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
}

/** A source of ULIDs, each greater than all before it, even within one millisecond or when the clock goes back. */
export function ulidGenerator({ now, random }: UlidSource): () => Uint8Array {
  const last = new Uint8Array(16);
  let lastTime = -1;
  return () => {
    const time = Math.max(0, Math.floor(now()));
    if (time > lastTime) {
      lastTime = time;
      last.set(random(10), 6);
    } else {
      let i = 15;
      for (; i >= 6; i--) {
        const next = ((last[i] ?? 0) + 1) & 0xff;
        last[i] = next;
        if (next !== 0) break;
      }
      // All 80 bits overflowed: moves on to the next millisecond early.
      if (i < 6) lastTime += 1;
    }
    const high = Math.floor(lastTime / 0x1_0000_0000);
    last[0] = high >>> 8;
    last[1] = high;
    last[2] = lastTime >>> 24;
    last[3] = lastTime >>> 16;
    last[4] = lastTime >>> 8;
    last[5] = lastTime;
    return last.slice();
  };
}

/** 26 characters for the 16 bytes at `offset`. */
export function formatUlid(bytes: Uint8Array, offset = 0): string {
  // 128 bits are 13 groups of ten, preceded by two zero bits.
  const a = uint32At(bytes, offset);
  const b = uint32At(bytes, offset + 4);
  const c = uint32At(bytes, offset + 8);
  const d = uint32At(bytes, offset + 12);
  return `${pairs[a >>> 24]}${pairs[(a >>> 14) & 1023]}${pairs[(a >>> 4) & 1023]}${
    pairs[((a & 15) << 6) | (b >>> 26)]
  }${pairs[(b >>> 16) & 1023]}${pairs[(b >>> 6) & 1023]}${pairs[((b & 63) << 4) | (c >>> 28)]}${
    pairs[(c >>> 18) & 1023]
  }${pairs[(c >>> 8) & 1023]}${pairs[((c & 255) << 2) | (d >>> 30)]}${pairs[(d >>> 20) & 1023]}${
    pairs[(d >>> 10) & 1023]
  }${pairs[d & 1023]}`;
}

/** Big-endian read. A DataView would give a small array its own buffer, which costs as much as the rest. */
function uint32At(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
  );
}

/** `ring` and 16 bytes as `ring_01h…`. */
export function idFromBytes(prefix: string, bytes: Uint8Array, offset = 0): string {
  return `${prefix}_${formatUlid(bytes, offset)}`;
}

/**
 * The 16 bytes of an id with that prefix; undefined for any other text, such as one in upper case, with `i l o u`, or
 * over 128 bits.
 */
export function idToBytes(prefix: string, id: string): Uint8Array | undefined {
  const bytes = new Uint8Array(16);
  return readId(prefix, id, bytes, 0) ? bytes : undefined;
}

/** Creation time of an id with that prefix, in epoch milliseconds; undefined for any other text. */
export function timeOfId(prefix: string, id: string): number | undefined {
  const bytes = idToBytes(prefix, id);
  if (!bytes) return undefined;
  const view = new DataView(bytes.buffer);
  return view.getUint16(0) * 0x1_0000_0000 + view.getUint32(2);
}

/** Writes the 16 bytes of an id that the product made itself. Throws `internal` for any other text. */
export function knownIdInto(prefix: string, id: string, bytes: Uint8Array, offset: number): void {
  if (!readId(prefix, id, bytes, offset)) throw new KmsError('internal', `expected an id that starts with ${prefix}_`);
}

/** Whether the text is an id with that prefix; if so, its 16 bytes are written at `offset`. */
function readId(prefix: string, id: string, bytes: Uint8Array, offset: number): boolean {
  const start = prefix.length + 1;
  if (id.length !== start + 26 || !id.startsWith(prefix) || id.charAt(prefix.length) !== '_') return false;
  let bits = 0;
  let held = 0;
  let at = offset;
  for (let i = 0; i < 26; i++) {
    const value = values[id.charCodeAt(start + i)] ?? 255;
    if (value > 31) return false;
    if (i === 0) {
      // The first character holds the upper three bits; more would exceed 128.
      if (value > 7) return false;
      held = value;
      bits = 3;
      continue;
    }
    held = ((held << 5) | value) & 0x1fff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >>> bits;
    }
  }
  return true;
}
