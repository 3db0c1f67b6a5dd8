// Memory goes back to the system when the process has little to do: what a collector keeps for the next burst of
// requests, half of what a busy server has, is of no use until one comes. V8 does so too, by and by and once or twice;
// the executable tells it to begin at once, so that what a start leaves goes first of all.
import { setFlagsFromString } from 'node:v8';

/** Milliseconds between looks at how much was done. */
const lookEvery = 5_000;
/** Milliseconds that a start takes, and how long V8 waits by itself. */
const started = 4_000;
const patienceOfV8 = 8_000;
/** Of one core, meanwhile: less is little. */
const little = 0.02;
/** Microseconds of processor time since memory last went back: with less than this none has gathered. */
const worthIt = 300_000;
/** The collector makes young memory small only when it sees that little is asked of it, which is not the first time. */
const times = 4;

interface IdleWorld {
  /** Processor time of the process so far, in microseconds. */
  readonly used: () => number;
  /** Collects all that can be; undefined where the runtime lets nobody ask for that. */
  readonly collect: (() => void) | undefined;
  readonly every?: number;
}

/**
 * Collects, some 10 ms in which nobody is served, when nobody asks. Flavor `last-resort` collects several times over in
 * one pause of up to 70.
 */
function collectAll(): (() => void) | undefined {
  const { gc } = globalThis;
  return gc && (() => void gc({ type: 'major', flavor: 'regular', execution: 'sync' }));
}

function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** From now on; answers what ends it. */
export function giveMemoryBack({
  used = processorTime,
  collect = collectAll(),
  every = lookEvery,
}: Partial<IdleWorld> = {}): () => void {
  if (!collect) return () => {};
  let before = used();
  // What a start leaves is worth it, however little time it took.
  let after = Number.NEGATIVE_INFINITY;
  let due = 0;
  const timer = setInterval(() => {
    const now = used();
    const isIdle = now - before < every * 1000 * little;
    before = now;
    if (now - after >= worthIt) due = times;
    if (!isIdle || due === 0) return;
    collect();
    due--;
    after = before = used();
  }, every);
  timer.unref();
  // Between two bursts of requests it would make young memory small, which the second one has to make large again.
  const patient = setTimeout(() => setFlagsFromString(`--memory-reducer-delay-ms=${patienceOfV8}`), started).unref();
  return () => {
    clearInterval(timer);
    clearTimeout(patient);
  };
}
