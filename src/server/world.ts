// The world outside, as the core is handed it: the system's clock and secure generator, and ids that only grow.
import type { World } from '../core/context.ts';
import { systemRandom } from '../crypto/random.ts';
import { formatUlid, ulidGenerator } from '../crypto/ulid.ts';

export function systemWorld(): World {
  const random = drawnTogether(systemRandom, setImmediate);
  const nextUlid = ulidGenerator({ now: Date.now, random });
  return {
    now: Date.now,
    random,
    newId: (prefix) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}

const drawn = 2048;
const short = 32;

/**
 * Draws once for the many short asks of one turn of the event loop, since each draw costs as much as a MAC. What is left at the turn's end
 * is thrown away: a machine that is restored twice from one image must not give out the same bytes twice.
 */
export function drawnTogether(
  random: (length: number) => Uint8Array,
  atTurnsEnd: (run: () => void) => void,
): (length: number) => Uint8Array {
  let pool: Uint8Array = new Uint8Array(0);
  let at = 0;
  const empty = (): void => {
    pool.fill(0);
    at = pool.length;
  };
  return (length) => {
    if (length > short) return random(length);
    if (at + length > pool.length) {
      pool = random(drawn);
      at = 0;
      atTurnsEnd(empty);
    }
    const bytes = pool.slice(at, at + length);
    pool.fill(0, at, at + length);
    at += length;
    return bytes;
  };
}
