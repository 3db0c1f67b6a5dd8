// How a thread takes orders and ends. V8's helper, shared by all threads, compiles hot code. If a thread's old
// generation is at its limit, the helper waits for it to collect; a thread that ends at that moment waits for the
// helper, and both hang for ever, along with every thread that ends later and all other work of the helper
// (https://github.com/nodejs/node/issues/54918). So a thread, and a server too, collects before it ends, which leaves
// the helper room. (Of busy threads, one in 10 to 200 hung at its end; with the collection none of 4,000.)
import type { MessagePort, Worker } from 'node:worker_threads';

/** The last order. */
const leave = 'leave';

/** Milliseconds that a thread has to finish its work and end, and again once it is terminated. */
const patience = 2_000;

/** Whether a thread did not end when told to. */
let isStuck = false;

/** Runs in the thread: takes orders until it is told to end; `close` releases what would keep it alive. */
export function takeOrders<O>(port: MessagePort, take: (order: O) => void, close?: () => Promise<void>): void {
  port.on('message', (order: O | typeof leave) => {
    if (order !== leave) return take(order);
    void Promise.resolve(close?.()).finally(() => {
      globalThis.gc?.();
      port.close();
    });
  });
}

/** Ends a thread that takes orders after its current work, or after some seconds at the latest. */
export async function endThread(worker: Worker): Promise<void> {
  // The thread has already ended.
  if (worker.threadId === -1) return;
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  // Errors of pending work no longer matter.
  worker.on('error', () => {});
  worker.ref();
  worker.postMessage(leave);
  if (await isInTime(ended)) return;
  if (!(await isInTime(worker.terminate()))) endWithoutThem();
}

/** From now on the process does not wait for its threads at its end, since one of them may never end. */
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
