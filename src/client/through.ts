// A generator that works on bytes as a pair of Web Streams, for `pipeThrough`. It is pulled: it takes from what is written only what
// the reader has asked for. However one side ends, the other learns the reason.

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
