// How long something keeps others from the event loop, in CPU time of its thread: neither how busy the machine is counts
// nor what V8's helpers and the store's threads do beside it. Or in units of work that a test counts, each of which then
// takes a millisecond.
import type { TestContext } from 'node:test';

/** Runs `work`; answers the most CPU time of this thread, in milliseconds, that went by between two turns of the event loop. */
export function longestGo(work: () => Promise<unknown>): Promise<number> {
  const cpu = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  return mostInOneGo(cpu, work);
}

/** By how much `sum`, which goes up, went up at most between two turns of the event loop while `work` ran. */
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
  /** Has `result` counted as one. */
  count<R>(result: R): R;
  readonly done: number;
  /** The most that was counted between two turns of the event loop. */
  inOneGo(work: () => Promise<unknown>): Promise<number>;
}

/** Until the test ends, one of what is counted takes a millisecond of processor time, and nothing else takes any. */
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
