// The process that an appliance runs in: its environment and user, its clock and randomness, and what it does about
// itself because it holds keys. Options of commands come through the CLI, never from here.
import { writeFile } from 'node:fs/promises';
import { url as debuggerUrl } from 'node:inspector';
import type { World } from '../core/context.ts';
import { systemRandom } from '../crypto/random.ts';
import { formatUlid, ulidGenerator } from '../crypto/ulid.ts';
import { KmsError } from '../errors.ts';

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

/** Flags of Node that let somebody else look into the memory, or that write parts of it into files. */
const telling =
  /^--(inspect(-brk|-wait)?(=.*)?|heapsnapshot-signal=.+|heapsnapshot-near-heap-limit=[1-9].*|heap-prof|cpu-prof|report-on-\w+|abort-on-uncaught-exception)$/;

let done = false;

/**
 * As far as Node lets it: files for its user alone, core dumps without memory, no debugger. Locking memory and the
 * limits of the system are for the unit file to set and for `kms doctor` to look at. Throws `refused` where the process
 * is open to a debugger.
 */
export async function hardenProcess(
  flags: readonly string[] = process.execArgv,
  debugger_ = debuggerUrl(),
): Promise<void> {
  const flag = flags.find((each) => telling.test(each));
  if (flag !== undefined || debugger_ !== undefined) {
    throw new KmsError('refused', `the process can be looked into: ${flag ?? `a debugger may come to ${debugger_}`}`, {
      hint: 'start it without; NODE_OPTIONS may hold it',
    });
  }
  if (done) return;
  done = true;
  process.umask(0o077);
  // Node starts a debugger at this signal unless somebody else listens to it.
  process.on('SIGUSR1', () => {});
  // No kind of memory goes into a core dump: core(5). Elsewhere than on Linux there is no such file.
  await writeFile('/proc/self/coredump_filter', '0').catch(() => {});
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

const drawn = 2048;
const short = 32;

/**
 * Draws once for the many short asks of one turn of the event loop, since each draw costs as much as a MAC. What is
 * left at the turn's end is thrown away: a machine that is restored twice from one image must not give out the same
 * bytes twice.
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
