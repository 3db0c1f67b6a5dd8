// Streams for the tests: a byte string in pieces, and what a stream gave before it ended or failed.
import assert from 'node:assert/strict';

/** The bytes in pieces of these sizes, over and over. */
export async function* inPieces(
  bytes: Uint8Array,
  ...sizes: readonly number[]
): AsyncGenerator<Uint8Array, void, void> {
  let offset = 0;
  for (let i = 0; offset < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? bytes.length;
    yield bytes.subarray(offset, offset + size);
    offset += size;
  }
}

/** Everything that came, and the error that ended it, if one did. */
export async function collect(source: AsyncIterable<Uint8Array>): Promise<{ bytes: Uint8Array; error: unknown }> {
  const parts: Uint8Array[] = [];
  let error: unknown;
  try {
    for await (const part of source) parts.push(part);
  } catch (caught) {
    error = caught;
  }
  return { bytes: new Uint8Array(Buffer.concat(parts)), error };
}

/** An element that is there. */
export function piece<T>(list: readonly T[], n: number): T {
  return list[n] ?? assert.fail(`nothing at ${n}`);
}

/** The pieces as a Web Stream; `cancelled` is called when its reader gives up. */
export function readable(
  pieces: AsyncIterator<Uint8Array, unknown, undefined>,
  cancelled: () => void = () => {},
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: cancelled,
  });
}
