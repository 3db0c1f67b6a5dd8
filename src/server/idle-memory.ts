// Idle memory is given back to the system when the process has little to do: the garbage that the collector and the C
// library keep for the next burst, half of a busy server's memory.
import { trimHeap } from '../platform/trim-heap.ts';

/** Milliseconds between checks of the load. */
const lookEvery = 5_000;
/** Milliseconds until a start and its self-tests are over, and how long the process must then be quiet. */
const startTakes = 1_500;
const quiet = 150;
/** Share of one core below which the process counts as idle. */
const little = 0.02;
/** Microseconds of processor time of all threads since the last time: with less than this, no garbage has gathered. */
const worthIt = 300_000;
/** Minimum milliseconds between two rounds: a thread may work for hours beside an idle serving thread. */
const apart = 60_000;
/**
 * Collections in a round: V8 shrinks the young generation only once it sees low demand, which is not the first time.
 */
const times = 4;
/** Milliseconds after a collection by which its helper threads have freed the memory. */
const freed = 100;

interface IdleWorld {
  /** Processor time of the serving thread so far, in microseconds. */
  readonly used: () => number;
  /** Processor time of all threads, likewise. */
  readonly worked: () => number;
  /**
   * Collects garbage; `thoroughly` repeats it several times in one pause. Undefined if the runtime does not expose it.
   */
  readonly collect: ((thoroughly?: boolean) => void) | undefined;
  /** Returns freed memory that the C library keeps. */
  readonly trim: () => void;
  readonly every?: number;
}

/** Blocks the event loop for 21 to 95 ms, depending on the load of the machine; thoroughly, 30 to 170. */
function collectAll(): IdleWorld['collect'] {
  const { gc } = globalThis;
  return gc && ((thoroughly = false) => void gc({ type: 'major', flavor: thoroughly ? 'last-resort' : 'regular' }));
}

const sum = ({ user, system }: NodeJS.CpuUsage): number => user + system;

/** Starts giving memory back; the returned function stops it. */
export function giveMemoryBack({
  used = () => sum(process.threadCpuUsage()),
  worked = () => sum(process.cpuUsage()),
  collect = collectAll(),
  trim = trimHeap,
  every = lookEvery,
}: Partial<IdleWorld> = {}): () => void {
  if (!collect) return () => {};
  let before = used();
  // The garbage of the start is always worth a round, however little time it took.
  let after = Number.NEGATIVE_INFINITY;
  let due = 0;
  let untilNext = 0;
  let trimming: NodeJS.Timeout | undefined;
  const giveBack = (thoroughly: boolean): void => {
    collect(thoroughly);
    before = used();
    after = worked();
    trimming = setTimeout(trim, freed).unref();
  };
  const timer = setInterval(() => {
    const now = used();
    const isIdle = now - before < every * 1000 * little;
    before = now;
    untilNext -= every;
    if (worked() - after >= worthIt) due = times;
    if (!isIdle || due === 0 || (due === times && untilNext > 0)) return;
    if (due === times) untilNext = apart;
    giveBack(false);
    due--;
  }, every);
  timer.unref();
  // V8 on its own keeps the garbage of the start for half a minute.
  let first = setTimeout(() => {
    const settled = used();
    first = setTimeout(() => {
      if (used() - settled < quiet * 1000 * little) giveBack(true);
    }, quiet).unref();
  }, startTakes).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(first);
    clearTimeout(trimming);
  };
}
