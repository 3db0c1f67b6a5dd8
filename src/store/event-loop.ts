// Fair sharing of the event loop by all long work on this thread. After queues, pages and searches together have worked
// for a while, they rest so that everything else is served, however many of them wait.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Processor time in milliseconds after which the next request of a queue waits for a rest. */
const longestGo = 12;
/** The same for the next part of a page or a search. */
const shortGo = 2;
/** Length of a rest in turns of the event loop: each accepts one connection, and costs some microseconds if idle. */
const restTurns = 32;

/**
 * The start of the current work, by the wall clock and by the thread's processor time; undefined while there is none.
 */
let began: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined;
/** Waiters in order of arrival. */
const waiting: (() => void)[] = [];
let isResting = false;

/** Await this before each part of long work, some milliseconds each. It rests if a rest is due. */
export function yieldToEventLoop(): Promise<void> | undefined {
  return waiting.length > 0 || isLong(shortGo) ? afterRest() : begin();
}

/** Runs long work slice by slice and yields to the event loop in between. */
export async function runSlices<R>(slices: Generator<void, R, void>): Promise<R> {
  for (;;) {
    const slice = slices.next();
    if (slice.done) return slice.value;
    await yieldToEventLoop();
  }
}

/** The same before each request of a queue. Most are short, and they are what the rests of other work are for. */
export function yieldBeforeRequest(): Promise<void> | undefined {
  return isLong() ? afterRest() : begin();
}

function afterRest(): Promise<void> {
  if (!isResting) void rest();
  return new Promise((resolve) => waiting.push(resolve));
}

function isLong(go = longestGo): boolean {
  // The wall clock is cheaper to read, but also runs while other processes have the processor.
  if (began === undefined || performance.now() - began.at <= go) return false;
  const { user, system } = process.threadCpuUsage(began.cpu);
  return (user + system) / 1000 > go;
}

/** Work within one turn of the event loop counts together. */
function begin(): undefined {
  if (began !== undefined) return;
  began = { at: performance.now(), cpu: process.threadCpuUsage() };
  setImmediate(() => {
    if (isResting) return;
    if (isLong()) void rest();
    else began = undefined;
  });
}

function beginAnew(): void {
  began = undefined;
  begin();
}

async function rest(): Promise<void> {
  isResting = true;
  do {
    // Work that arrived in this turn of the event loop waits too.
    await nextTurn();
    // From here on the others' work counts. Otherwise they would wait for the very work that the rest relieves them of.
    beginAnew();
    for (let turn = 1; turn < restTurns; turn++) await nextTurn();
    beginAnew();
    // One in each turn, or all would go on before any of them has worked.
    for (let next = waiting.shift(); next; next = isLong() ? undefined : waiting.shift()) {
      next();
      await nextTurn();
    }
  } while (waiting.length > 0 || isLong());
  isResting = false;
  began = undefined;
}
