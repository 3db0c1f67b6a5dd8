// Work on the items of a stream ahead of its reader: several at a time, in order, bounded.

/**
 * `work` on each item and its index, `depth` of them at a time while one more is being read; the results in order. What
 * fails, reading or working, fails where its result would have come. Giving up early calls `stop`.
 */
export async function* ahead<T, R>(
  items: AsyncIterator<T, unknown, undefined>,
  depth: number,
  work: (item: T, index: number) => Promise<R>,
  stop: () => Promise<unknown>,
): AsyncGenerator<R, void, void> {
  const underWay: Promise<R>[] = [];
  let coming: Promise<IteratorResult<T, unknown>> | undefined = handled(items.next());
  let index = 0;
  let finished = false;
  try {
    while (coming || underWay.length > 0) {
      if (coming && underWay.length < depth) {
        try {
          const item: IteratorResult<T, unknown> = await coming;
          if (!item.done) underWay.push(handled(work(item.value, index++)));
          coming = item.done ? undefined : handled(items.next());
        } catch (error) {
          underWay.push(handled(Promise.reject(error)));
          coming = undefined;
        }
      } else {
        const [first] = underWay.splice(0, 1);
        if (first) yield await first;
      }
    }
    finished = true;
  } finally {
    // Not awaited: a source that waits for its next byte would keep its reader from learning of the failure.
    if (!finished) void handled(stop());
  }
}

/** Marks a promise that is awaited later or never, so that its failing until then is no unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
