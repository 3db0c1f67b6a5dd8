// Long work on the event loop in short turns, so that no request waits for a search.
import { setImmediate } from 'node:timers/promises';

/** A function to await after each step: every so many steps it lets others have their turn. */
export function takeTurns(stepsATurn: number): () => Promise<void> {
  let steps = 0;
  return async () => {
    steps++;
    if (steps % stepsATurn === 0) await setImmediate();
  };
}
