// Byte streams of either kind: read in exact lengths or in blocks, processed ahead of the reader, and as a pair of Web
// Streams around a generator.
import { KmsError } from '../errors.ts';

/** A yielded piece belongs to the consumer: the source does not write to it again. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface ByteReader extends AsyncIterableIterator<Uint8Array, undefined, undefined> {
  /** The next `length` bytes, or fewer at the end. Later bytes stay to be read. */
  take(length: number): Promise<Uint8Array>;
  /** Drops the rest and cancels the source. */
  return(): Promise<IteratorReturnResult<undefined>>;
  /**
   * Drops the rest and cancels the source without waiting: a source that waits for its next byte would keep the reader
   * from learning of a failure.
   */
  giveUp(): void;
}

/** Reads `source` from its beginning. Throws `invalid` for pieces that are not bytes. */
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
      // Pieces may be as small as a byte: each is copied as it comes, so that none is retained and the memory used is
      // that of the bytes.
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
  /** Exactly the block length, except for the last block, which is always shorter and may be empty. */
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

/** The next non-empty piece. */
async function filled(reader: ByteReader): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await reader.next();
    if (done) return undefined;
    if (value.length > 0) return value;
  }
}

/**
 * Runs `work` on each item and its index, up to `depth` at a time while the next item is being read; yields the results
 * in order. An error of reading or working is thrown at its place in that order.
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
        // A slow source does not hold up finished results.
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

/**
 * Marks a promise that is awaited later or never, so that its rejection in the meantime is not reported as unhandled.
 */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

export interface Through {
  readonly writable: WritableStream<Uint8Array>;
  readonly readable: ReadableStream<Uint8Array>;
}

type Work = (source: AsyncIterable<Uint8Array>, ended: AbortSignal) => AsyncGenerator<Uint8Array, void, void>;

/** `ended` tells the work that its result is no longer wanted. `signal` ends both sides with its reason. */
export function through(work: Work, signal?: AbortSignal): Through {
  const { writable, readable: input } = new TransformStream<Uint8Array, Uint8Array>();
  const reader = input.getReader();
  const ended = new AbortController();
  // No `return`: the writer must learn the reason, which the work cannot pass on.
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
