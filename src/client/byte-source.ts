// Where bytes come from, as one kind of iterator, and readers that take an exact number of them: the first few, or blocks of
// one length to the end.
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
      const first = await filled(reader);
      if (!first) return new Uint8Array();
      if (first.length >= length) {
        if (first.length > length) left = first.subarray(length);
        return first.subarray(0, length);
      }
      // Pieces may be as small as a byte: each is copied as it comes, so that none is kept and none costs more than itself.
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
