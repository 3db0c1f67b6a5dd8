// Turns of the event loop, as all long work of this thread shares them: what queues, pages and searches together did
// for a while is followed by a rest, in which whatever else has come is served, however many wait to go on.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds of processor time that they work before the next request of a queue waits for a rest. */
const longestGo = 12;
/** The same before the next part of a page or a search does. */
const shortGo = 2;
/**
 * In turns of the event loop: it takes one connection in each, and each costs some microseconds where nothing waits.
 */
const restTurns = 32;

/** When they began to work, by the clock and by the thread's processor time; undefined while none does. */
let began: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined;
/** Who waits to go on, in the order of coming. */
const waiting: (() => void)[] = [];
let isResting = false;

/** To be awaited before each part of long work, of some milliseconds: a rest where one is due, else nothing. */
export function yieldToEventLoop(): Promise<void> | undefined {
  return waiting.length > 0 || isLong(shortGo) ? afterRest() : begin();
}

/** Runs long work slice by slice, with turns of others in between. */
export async function runSlices<R>(slices: Generator<void, R, void>): Promise<R> {
  for (;;) {
    const slice = slices.next();
    if (slice.done) return slice.value;
    await yieldToEventLoop();
  }
}

/** The same before each of a queue of requests, of which most are short: they are what a rest of others is for. */
export function yieldBeforeRequest(): Promise<void> | undefined {
  return isLong() ? afterRest() : begin();
}

function afterRest(): Promise<void> {
  if (!isResting) void rest();
  return new Promise((resolve) => waiting.push(resolve));
}

function isLong(go = longestGo): boolean {
  // The clock is quicker to ask, but runs on while others have the processor.
  if (began === undefined || performance.now() - began.at <= go) return false;
  const { user, system } = process.threadCpuUsage(began.cpu);
  return (user + system) / 1000 > go;
}

/** What is done within one turn of the event loop counts together. */
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
    // What came in this turn of the event loop waits too.
    await nextTurn();
    // From now on what the others do counts, or they would wait for what it was that they are rested from.
    beginAnew();
    for (let turn = 1; turn < restTurns; turn++) await nextTurn();
    beginAnew();
    // One in each turn, or they would all go on before any of them has worked.
    for (let next = waiting.shift(); next; next = isLong() ? undefined : waiting.shift()) {
      next();
      await nextTurn();
    }
  } while (waiting.length > 0 || isLong());
  isResting = false;
  began = undefined;
}
