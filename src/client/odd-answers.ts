// Answers to an outgoing HTTP request for which Node reports no error: the request would wait for ever, or as long as
// the other side pleases.

/** A request of Node's. */
interface Outgoing {
  on(
    event: string,
    listener: (answer: { readonly statusCode?: number | undefined }, socket: { destroy(): unknown }) => void,
  ): unknown;
  destroy(error: Error): unknown;
}

/** Limit of 1xx answers ahead of the final one: reading them costs as much as serving. */
const mostHints = 16;

/** Calls `failed` if the answer switches protocols unasked; ends a request that is answered 1xx again and again. */
export function failOnOddAnswers(request: Outgoing, failed: (error: Error) => void): void {
  let hints = 0;
  request.on('information', () => {
    if (++hints > mostHints) request.destroy(new Error('it answered 1xx again and again'));
  });
  request.on('upgrade', ({ statusCode }, socket) => {
    socket.destroy();
    failed(new Error(`it answered ${statusCode}, and nobody asked for another protocol`));
  });
}
