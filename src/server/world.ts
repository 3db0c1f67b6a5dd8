// The world outside, as the core is handed it: the system's clock and secure generator, and ids that only grow.
import type { World } from '../core/context.ts';
import { systemRandom } from '../crypto/random.ts';
import { formatUlid, ulidGenerator } from '../crypto/ulid.ts';

export function systemWorld(): World {
  const nextUlid = ulidGenerator({ now: Date.now, random: systemRandom });
  return {
    now: Date.now,
    random: systemRandom,
    newId: (prefix) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}
