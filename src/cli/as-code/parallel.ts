// Requests side by side, a few at a time: the appliance makes what comes together durable together.

/** Requests under way at once. */
const atOnce = 24;

/** Results in the order of the items. The first rejection ends it, once what is under way has ended. */
export async function inParallel<T, R>(items: readonly T[], run: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results = new Map<number, R>();
  const queue = items.entries();
  let failure: { readonly error: unknown } | undefined;
  const work = async (): Promise<void> => {
    for (const [at, item] of queue) {
      if (failure) return;
      try {
        results.set(at, await run(item, at));
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  if (failure) throw failure.error;
  return [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
}
