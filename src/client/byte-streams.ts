// Byte streams, of whatever kind they come: read in exact numbers of bytes or in blocks, worked on ahead of the reader,
// and as a pair of Web Streams around a generator.
import { KmsError } from '../errors.ts';

/** A piece belongs to the taker once it is given: the source does not write to it again. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface ByteReader extends AsyncIterableIterator<Uint8Array, undefined, undefined> {
  /** The next `length` bytes, or as many as there are. What follows them stays to be read. */
  take(length: number): Promise<Uint8Array>;
  /** Gives the rest up and cancels the source. */
  return(): Promise<IteratorReturnResult<undefined>>;
  /**
   * Gives the rest up and cancels the source, without waiting for that: a source that waits for its next byte would
   * keep its reader from learning of a failure.
   */
  giveUp(): void;
}

/** Reads `source` from its beginning. Throws `invalid` for pieces that are no bytes. */
export function byteReader(source: ByteSource): ByteReader {
  const pieces = piecesOf(source);
  let left: Uint8Array | undefined;
  const reader: ByteReader = {
    async next() {
      const value = left;
      left = undefined;
      if (value) return { done: false, value };
      const result = await pieces.next();
      if (result.done) return { done: true, value: undefined };
      if (!(result.value instanceof Uint8Array)) throw new KmsError('invalid', 'expected a stream of bytes');
      return result;
    },
    async return() {
      await pieces.return?.();
      return { done: true, value: undefined };
    },
    giveUp() {
      pieces.return?.().catch(() => {});
    },
    async take(length) {
      const first = await filled(reader);
      if (!first) return new Uint8Array();
      if (first.length >= length) {
        if (first.length > length) left = first.subarray(length);
        return first.subarray(0, length);
      }
      // Pieces may be as small as a byte: each is copied as it comes, so that none is kept and none costs more than
      // itself.
      let block: Uint8Array | undefined;
      let filledTo = first.length;
      while (filledTo < length) {
        const piece = await filled(reader);
        if (!piece) break;
        if (!block) {
          block = new Uint8Array(length);
          block.set(first);
        }
        const missing = length - filledTo;
        if (piece.length > missing) left = piece.subarray(missing);
        block.set(piece.subarray(0, missing), filledTo);
        filledTo += Math.min(missing, piece.length);
      }
      return block ? block.subarray(0, filledTo) : first;
    },
    [Symbol.asyncIterator]: () => reader,
  };
  return reader;
}

export interface Block {
  /** The block length exactly, but for the last block, which is always shorter and may be empty. */
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

/** Cuts the rest into blocks of `length` bytes; a block within one piece is a view of it, not a copy. */
export async function* inBlocks(reader: ByteReader, length: number): AsyncGenerator<Block, void, void> {
  for (let last = false; !last; ) {
    const bytes = await reader.take(length);
    last = bytes.length < length;
    yield { bytes, last };
  }
}

/** Not every browser can iterate over a ReadableStream. */
function piecesOf(source: ByteSource): AsyncIterator<Uint8Array> {
  if (!('getReader' in source)) return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  return {
    async next() {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done, value };
    },
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** The next piece that holds anything. */
async function filled(reader: ByteReader): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await reader.next();
    if (done) return undefined;
    if (value.length > 0) return value;
  }
}

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

export interface Through {
  readonly writable: WritableStream<Uint8Array>;
  readonly readable: ReadableStream<Uint8Array>;
}

type Work = (source: AsyncIterable<Uint8Array>, ended: AbortSignal) => AsyncGenerator<Uint8Array, void, void>;

/** `ended` tells the work that nobody wants its result any more. `signal` ends both sides with its reason. */
export function through(work: Work, signal?: AbortSignal): Through {
  const { writable, readable: input } = new TransformStream<Uint8Array, Uint8Array>();
  const reader = input.getReader();
  const ended = new AbortController();
  // Without a `return`: the writer is to learn why, and the work cannot say it.
  const pieces = work({ [Symbol.asyncIterator]: () => ({ next: () => nextOf(reader) }) }, ended.signal);

  function end(reason: unknown): void {
    ended.abort(reason);
    reader.cancel(reason).catch(() => {});
    pieces.return().catch(() => {});
    signal?.removeEventListener('abort', stop);
  }

  let output: ReadableStreamDefaultController<Uint8Array> | undefined;
  function stop(): void {
    output?.error(signal?.reason);
    end(signal?.reason);
  }

  const readable = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        output = controller;
        if (signal?.aborted) stop();
        else signal?.addEventListener('abort', stop, { once: true });
      },
      async pull(controller) {
        try {
          for (;;) {
            const { done, value } = await pieces.next();
            if (ended.signal.aborted) return;
            if (done) {
              signal?.removeEventListener('abort', stop);
              controller.close();
              return;
            }
            if (value.length === 0) continue;
            controller.enqueue(value);
            return;
          }
        } catch (error) {
          if (ended.signal.aborted) return;
          end(error);
          controller.error(error);
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
  return { writable, readable };
}

async function nextOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<IteratorResult<Uint8Array, undefined>> {
  const { done, value } = await reader.read();
  return done ? { done, value: undefined } : { done, value };
}
