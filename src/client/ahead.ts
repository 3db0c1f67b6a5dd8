// Work on the items of a stream ahead of its reader: several at a time, in order, bounded.

/**
 * `work` on each item and its index, `depth` of them at a time while one more is being read; the results in order. What
 * fails, reading or working, fails where its result would have come.
 */
export async function* ahead<T, R>(
  items: AsyncIterator<T, unknown, undefined>,
  depth: number,
  work: (item: T, index: number) => Promise<R>,
): AsyncGenerator<R, void, void> {
  const underWay: Promise<R>[] = [];
  let coming: Promise<IteratorResult<T, unknown>> | undefined = handled(items.next());
  let index = 0;
  while (coming || underWay.length > 0) {
    const [first] = underWay;
    if (coming && underWay.length < depth) {
      try {
        // A source that gives its next item late does not hold up the results that are there.
        const item: IteratorResult<T, unknown> | undefined = await (first
          ? Promise.race([coming, settled(first)])
          : coming);
        if (item) {
          if (!item.done) underWay.push(handled(work(item.value, index++)));
          coming = item.done ? undefined : handled(items.next());
          continue;
        }
      } catch (error) {
        underWay.push(handled(Promise.reject(error)));
        coming = undefined;
        continue;
      }
    }
    if (first) {
      underWay.shift();
      yield await first;
    }
  }
}

/** Resolves, to nothing, when the promise settles. */
function settled(promise: Promise<unknown>): Promise<undefined> {
  const nothing = (): undefined => undefined;
  return promise.then(nothing, nothing);
}

/** Marks a promise that is awaited later or never, so that its failing until then is no unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
