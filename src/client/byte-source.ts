// Where bytes come from, as one kind of iterator, and readers that take an exact number of them: the first few, or blocks of
// one length to the end.
import { concatBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';

/** A piece belongs to the taker once it is given: the source does not write to it again. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface ByteReader extends AsyncIterableIterator<Uint8Array, undefined, undefined> {
  /** The next `length` bytes, or as many as there are. What follows them stays to be read. */
  take(length: number): Promise<Uint8Array>;
  /** Gives the rest up and cancels the source. */
  return(): Promise<IteratorReturnResult<undefined>>;
  /**
   * Gives the rest up and cancels the source, without waiting for that: a source that waits for its next byte would keep
   * its reader from learning of a failure.
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
      const parts: Uint8Array[] = [];
      for (let missing = length; missing > 0; ) {
        const { done, value } = await reader.next();
        if (done) break;
        if (value.length > missing) left = value.subarray(missing);
        parts.push(value.subarray(0, missing));
        missing -= Math.min(missing, value.length);
      }
      return joined(parts);
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

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  return only && parts.length === 1 ? only : concatBytes(...parts);
}
