// Work that may take long and leaves nothing: given up at once when somebody asks for that.
import { KmsError } from '../errors.ts';

/** What comes of `pending`, unless `signal` is aborted first: then that is thrown, whatever else goes on. */
export async function unlessAborted<T>(pending: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return pending;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(reasonOf(signal));
  if (signal.aborted) giveUp();
  else signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([pending, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** The pieces, as long as `signal` is not aborted. */
export async function* piecesUnlessAborted<T>(pieces: AsyncIterable<T>, signal: AbortSignal | undefined) {
  for await (const piece of pieces) {
    if (signal?.aborted) throw reasonOf(signal);
    yield piece;
  }
}

function reasonOf({ reason }: AbortSignal): unknown {
  return reason instanceof KmsError ? reason : new KmsError('unavailable', 'it was interrupted');
}
