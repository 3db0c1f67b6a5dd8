// Streams for the tests: a byte string in pieces, and the output of a stream before it ended or failed.
import assert from 'node:assert/strict';

/** The bytes in pieces of these sizes, which repeat. */
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

/** All output, and the error that ended it, if any. */
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

/** Element `n`, which must exist. */
export function piece<T>(list: readonly T[], n: number): T {
  return list[n] ?? assert.fail(`nothing at ${n}`);
}

/** The pieces as a Web Stream; `cancelled` is called when its reader cancels. */
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
