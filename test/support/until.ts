// Waiting for what comes by itself: a test looks again and again, however busy the machine is.
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';

/** Milliseconds after which it never comes. */
const patience = 60_000;

type Found<T> = T | undefined | false;

/** What the look finds, once it is anything; `what` says so when it never is. */
export async function until<T>(what: string, look: () => Found<T> | Promise<Found<T>>): Promise<T> {
  for (const end = Date.now() + patience; Date.now() < end; await setTimeout(10)) {
    const found = await look();
    if (found) return found;
  }
  return assert.fail(`never: ${what}`);
}
