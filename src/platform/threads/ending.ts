// How a thread takes orders, and ends. V8's helper, which all threads share, compiles what a thread runs often. Where
// that thread's old memory is at its limit, the helper waits for it to collect; one that ends at that moment waits for
// the helper, and both wait for ever, and with them every thread that ends later and whatever else the helper is for
// (https://github.com/nodejs/node/issues/54918). So a thread collects before it ends, which leaves the helper room, and
// so does a server. (Of threads that ran much and ended, one in 10 to 200 hung; with the collection none of 4,000.)
import type { MessagePort, Worker } from 'node:worker_threads';

/** The last order. */
const leave = 'leave';

/** Milliseconds that a thread has for the work at hand and its end, and once more where it is made to end. */
const patience = 2_000;

/** Whether a thread was told to end and did not. */
let isStuck = false;

/** In the thread: takes orders until it is told to end; `close` gives up what would keep it alive. */
export function takeOrders<O>(port: MessagePort, take: (order: O) => void, close?: () => Promise<void>): void {
  port.on('message', (order: O | typeof leave) => {
    if (order !== leave) return take(order);
    void Promise.resolve(close?.()).finally(() => {
      globalThis.gc?.();
      port.close();
    });
  });
}

/** Has a thread that takes orders end after what it does, at the latest after some seconds. */
export async function endThread(worker: Worker): Promise<void> {
  // Of one that has ended.
  if (worker.threadId === -1) return;
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  // Whatever it was asked for is over.
  worker.on('error', () => {});
  worker.ref();
  worker.postMessage(leave);
  if (await isInTime(ended)) return;
  if (!(await isInTime(worker.terminate()))) endWithoutThem();
}

/** From now on the process does not wait for its threads when it ends, since one of them never might. */
function endWithoutThem(): void {
  if (!isStuck) process.on('exit', () => process.kill(process.pid, 'SIGKILL'));
  isStuck = true;
}

async function isInTime(pending: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, patience, false);
  });
  const inTime = await Promise.race([pending.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}
