// The system's secure generator, as the function that is passed to everything else, and a pool for the short draws of
// one turn of the event loop.

/** Maximum number of bytes that one call of getRandomValues fills. */
const perCall = 65536;

/**
 * `length` bytes from the system's secure generator. Nothing is drawn ahead: a pool would save a microsecond, and a
 * virtual machine restored twice would give out the same nonces twice.
 */
export function systemRandom(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  if (length <= perCall) return crypto.getRandomValues(bytes);
  for (let offset = 0; offset < length; offset += perCall) {
    crypto.getRandomValues(bytes.subarray(offset, offset + perCall));
  }
  return bytes;
}

type Random = (length: number) => Uint8Array;

/** Functions that return the system's random bytes. */
const ofSystem = new WeakSet<Random>([systemRandom]);

/**
 * Whether these are the system's bytes, so that a primitive with its own system randomness may draw it itself instead.
 */
export function isSystemRandom(random: Random): boolean {
  return ofSystem.has(random);
}

const drawn = 2048;
const short = 32;

/**
 * Draws once for all short requests in one turn of the event loop, since each draw costs as much as a MAC. Leftover
 * bytes are discarded when the turn ends: a machine restored twice from one image must not give out the same bytes
 * twice.
 */
export function pooledRandom(random: Random, atTurnsEnd: (run: () => void) => void): Random {
  let pool: Uint8Array = new Uint8Array(0);
  let at = 0;
  const empty = (): void => {
    pool.fill(0);
    at = pool.length;
  };
  const together: Random = (length) => {
    if (length > short) return random(length);
    if (at + length > pool.length) {
      pool = random(drawn);
      at = 0;
      atTurnsEnd(empty);
    }
    const bytes = new Uint8Array(length);
    // Byte by byte: for so few, `slice` and `fill` take three times as long.
    for (let i = 0; i < length; i++, at++) {
      bytes[i] = pool[at] ?? 0;
      pool[at] = 0;
    }
    return bytes;
  };
  if (isSystemRandom(random)) ofSystem.add(together);
  return together;
}
