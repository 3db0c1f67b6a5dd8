// Walks a list whose items must be loaded: while one is looked at, the next ones are loading already, more of them the
// further the walk goes; and now and then others get their turn on the event loop.
import { setImmediate } from 'node:timers/promises';

const maxAhead = 8;
const stepsATurn = 16;

/** A function to await after each step of long work, so that no request waits for a search. */
export function takeTurns(): () => Promise<void> {
  let steps = 0;
  return async () => {
    steps++;
    if (steps % stepsATurn === 0) await setImmediate();
  };
}

/** What `load` makes of each item, in order. The first item is loaded alone: often it is enough. */
export async function* lookAhead<T, R>(items: Iterable<T>, load: (item: T) => Promise<R>): AsyncGenerator<R> {
  const rest = items[Symbol.iterator]();
  const loading: Promise<R>[] = [];
  for (let ahead = 1; ; ahead = Math.min(ahead * 2, maxAhead)) {
    while (loading.length < ahead) {
      const { value, done } = rest.next();
      if (done) break;
      const loaded = load(value);
      // It is awaited when its turn comes, or never, when the walk ends before.
      loaded.catch(() => undefined);
      loading.push(loaded);
    }
    const next = loading.shift();
    if (!next) return;
    yield await next;
  }
}
