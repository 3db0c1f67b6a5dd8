// Work that somebody may give up.

/** The work's result; the signal's reason as soon as that comes, also where the work takes no notice of it. */
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
