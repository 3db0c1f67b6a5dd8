// Memory goes back to the system when the process has little to do: what the collector and the C library keep for the
// next burst of requests, half of what a busy server has, is of no use until one comes.
import { trimHeap } from '../platform/trim-heap.ts';

/** Milliseconds between looks at how much was done. */
const lookEvery = 5_000;
/** Milliseconds after which a start and its tests are over, and for how long nobody may have asked then. */
const startTakes = 1_500;
const quiet = 150;
/** Of one core, meanwhile: less is little. */
const little = 0.02;
/** Microseconds of all threads' processor time since memory last went back: with less than this none has gathered. */
const worthIt = 300_000;
/** Milliseconds between beginnings to give back: a thread may work for hours beside a process that has little to do. */
const apart = 60_000;
/** The collector makes young memory small only when it sees that little is asked of it, which is not the first time. */
const times = 4;
/** Milliseconds behind a collection, within which its helpers have freed what it found. */
const freed = 100;

interface IdleWorld {
  /** Processor time of the serving thread so far, in microseconds. */
  readonly used: () => number;
  /** The same of all threads. */
  readonly worked: () => number;
  /**
   * Collects all that can be, `thoroughly` several times over in one pause; undefined where the runtime lets nobody ask
   * for that.
   */
  readonly collect: ((thoroughly?: boolean) => void) | undefined;
  /** Gives back what the C library keeps of what was freed. */
  readonly trim: () => void;
  readonly every?: number;
}

/** When nobody asks: nobody is served meanwhile, 21 to 95 ms, by how busy the machine is; thoroughly, 30 to 170. */
function collectAll(): IdleWorld['collect'] {
  const { gc } = globalThis;
  return gc && ((thoroughly = false) => void gc({ type: 'major', flavor: thoroughly ? 'last-resort' : 'regular' }));
}

const sum = ({ user, system }: NodeJS.CpuUsage): number => user + system;

/** From now on; answers what ends it. */
export function giveMemoryBack({
  used = () => sum(process.threadCpuUsage()),
  worked = () => sum(process.cpuUsage()),
  collect = collectAll(),
  trim = trimHeap,
  every = lookEvery,
}: Partial<IdleWorld> = {}): () => void {
  if (!collect) return () => {};
  let before = used();
  // What a start leaves is worth it, however little time it took, if it is still there.
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
  // V8 by itself leaves what a start left for half a minute.
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
