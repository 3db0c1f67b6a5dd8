// The longest time that the event loop is blocked, in CPU time of its thread: other load on the machine does not count,
// nor do V8's helpers and the store's threads. Alternatively in units of work that a test counts, each of which then
// takes a millisecond.
import type { TestContext } from 'node:test';

/** Runs `work`; returns the most CPU time of this thread, in milliseconds, between two turns of the event loop. */
export function longestGo(work: () => Promise<unknown>): Promise<number> {
  const cpu = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  return mostInOneGo(cpu, work);
}

/** Tries of work that can be repeated, of which the cheapest counts: a crowded processor makes CPU time longer, too. */
const tries = 10;

/** The same for work that can be repeated: runs it until it took less than `limit` once; returns the least. */
export async function leastGo(limit: number, work: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < tries && least >= limit; n++) least = Math.min(least, await longestGo(work));
  return least;
}

/** The largest increase of `sum`, a growing counter, between two turns of the event loop while `work` ran. */
async function mostInOneGo(sum: () => number, work: () => Promise<unknown>): Promise<number> {
  let most = 0;
  let working = true;
  let before = sum();
  const turn = (): void => {
    most = Math.max(most, sum() - before);
    before = sum();
    if (working) setImmediate(turn);
  };
  await new Promise((resolve) => setImmediate(resolve));
  before = sum();
  setImmediate(turn);
  try {
    await work();
  } finally {
    working = false;
  }
  turn();
  return most;
}

export interface CountedWork {
  /** Counts one unit, and returns `result`. */
  count<R>(result: R): R;
  readonly done: number;
  /** The most units counted between two turns of the event loop. */
  inOneGo(work: () => Promise<unknown>): Promise<number>;
}

/** Until the test ends, each counted unit takes a millisecond of processor time, and nothing else takes any. */
export function countedWork({ mock }: TestContext): CountedWork {
  let done = 0;
  mock.method(performance, 'now', () => done);
  mock.method(process, 'threadCpuUsage', (before = { user: 0, system: 0 }) => ({
    user: done * 1000 - before.user,
    system: 0,
  }));
  return {
    count(result) {
      done++;
      return result;
    },
    get done() {
      return done;
    },
    inOneGo: (work) => mostInOneGo(() => done, work),
  };
}
