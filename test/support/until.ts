// Waiting for an event that comes by itself: polls, however busy the machine is.
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';

/** Milliseconds after which the wait fails. */
const patience = 60_000;

type Found<T> = T | undefined | false;

/** Returns the first truthy result of `look`. Fails with `what` if there is none in time. */
export async function until<T>(what: string, look: () => Found<T> | Promise<Found<T>>): Promise<T> {
  for (const end = Date.now() + patience; Date.now() < end; await setTimeout(10)) {
    const found = await look();
    if (found) return found;
  }
  return assert.fail(`never: ${what}`);
}
