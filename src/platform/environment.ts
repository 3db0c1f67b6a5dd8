// The appliance's surroundings on its machine: environment variables, user, clock and randomness. Options of commands
// come through the CLI, never from here.
import { pooledRandom, systemRandom } from '../crypto/random.ts';
import { formatUlid, ulidGenerator } from '../crypto/ulid.ts';

export function environment(name: string): string | undefined {
  return process.env[name];
}

/** The process's user id; undefined if the system has none. */
export function userId(): number | undefined {
  return process.getuid?.();
}

/** The process's group ids; none if the system has none. */
export function groupIds(): readonly number[] {
  const own = process.getegid?.();
  return [...(process.getgroups?.() ?? []), ...(own === undefined ? [] : [own])];
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Runs `work` as another user if the process is root and that user is not; otherwise as the present one. The whole
 * process changes user for that time, so nothing else may run in it.
 */
export async function actingAs<T>({ uid, gid }: User, work: () => Promise<T>): Promise<T> {
  const { geteuid, getegid, getgroups, seteuid, setegid, setgroups } = process;
  if (uid === 0 || geteuid?.() !== 0 || !getegid || !getgroups || !seteuid || !setegid || !setgroups) return work();
  const [group, groups] = [getegid(), getgroups()];
  setgroups([gid]);
  setegid(gid);
  seteuid(uid);
  try {
    return await work();
  } finally {
    seteuid(0);
    setegid(group);
    setgroups(groups);
  }
}

/** The system's clocks and secure generator, and monotonic ids. */
export function systemWorld() {
  const random = pooledRandom(systemRandom, setImmediate);
  const nextUlid = ulidGenerator({ now: Date.now, random });
  return {
    now: Date.now,
    elapsed: () => performance.now(),
    random,
    newId: (prefix: string) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}
