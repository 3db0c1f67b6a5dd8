// Abandoning asynchronous work when a signal aborts.

/**
 * The work's result, or a rejection with the signal's reason as soon as it aborts, even if the work ignores the signal.
 */
export function unless<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    work(signal)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}
