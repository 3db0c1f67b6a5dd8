// Answers to an outgoing HTTP request for which Node reports no error: the request would wait for ever, or as long as the
// other side pleases.
import type { ClientRequest } from 'node:http';

/** Limit of 1xx answers ahead of the final one: reading them costs as much as serving. */
const mostHints = 16;

/** Has the request fail if the answer switches protocols, which nobody asked for, or is 1xx again and again. */
export function failOnOddAnswers(request: ClientRequest, failed: (error: Error) => void): void {
  let hints = 0;
  request.on('information', () => {
    if (++hints > mostHints) request.destroy(new Error('it answered 1xx again and again'));
  });
  request.on('upgrade', ({ statusCode }, socket) => {
    socket.destroy();
    failed(new Error(`it answered ${statusCode}, and nobody asked for another protocol`));
  });
}
