// What an appliance is given by the machine that it runs on: environment variables, a user, a clock and randomness.
// Options of commands come through the CLI, never from here.
import type { World } from '../core/context.ts';
import { drawnTogether, systemRandom } from '../crypto/random.ts';
import { formatUlid, ulidGenerator } from '../crypto/ulid.ts';

export function environment(name: string): string | undefined {
  return process.env[name];
}

/** The user that the process acts as; undefined where the system has no such thing. */
export function userId(): number | undefined {
  return process.getuid?.();
}

/** The groups that the process acts for; none where the system has no such thing. */
export function groupIds(): readonly number[] {
  const own = process.getegid?.();
  return [...(process.getgroups?.() ?? []), ...(own === undefined ? [] : [own])];
}

/** The system's clock and secure generator, and ids that only grow. */
export function systemWorld(): World {
  const random = drawnTogether(systemRandom, setImmediate);
  const nextUlid = ulidGenerator({ now: Date.now, random });
  return {
    now: Date.now,
    random,
    newId: (prefix) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}
