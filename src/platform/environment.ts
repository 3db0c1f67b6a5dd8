// What an appliance is given by the machine that it runs on: environment variables, a user, a clock and randomness.
// Options of commands come through the CLI, never from here.
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

interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Does `work` as another user, where the process is root's and that user is not; otherwise as it is. The whole process
 * is that user meanwhile, so that nothing else may go on in it.
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

/** The system's clocks and secure generator, and ids that only grow. */
export function systemWorld() {
  const random = drawnTogether(systemRandom, setImmediate);
  const nextUlid = ulidGenerator({ now: Date.now, random });
  return {
    now: Date.now,
    elapsed: () => performance.now(),
    random,
    newId: (prefix: string) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}
