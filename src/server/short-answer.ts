// A short answer, sent as one string: status line, headers and body. Node assembles a head header by header and
// validates each again, which takes a twentieth of an encrypt; the part that most answers share is assembled here once.
import type { ServerResponse } from 'node:http';
import { headersOf, headLinesOf, type Outcome } from '../http/respond.ts';

/** Node's own fields for an assembled head, and whether it was sent. */
interface Headed {
  _header?: string | null;
  _headerSent?: boolean;
}

/** Cached `Date` header of the current second. */
let date = { second: 0, text: '' };

function dateNow(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() };
  return date.text;
}

/**
 * Sends `text` as the outcome's body.
 *
 * @param keptFor milliseconds that the connection is kept open for another request.
 */
export function sendText(
  outgoing: ServerResponse,
  outcome: Outcome,
  state: string | undefined,
  text: string,
  keptFor: number,
): void {
  const length = Buffer.byteLength(text);
  const encoding = length === text.length ? 'latin1' : 'utf8';
  const { socket, req, shouldKeepAlive } = outgoing;
  const isUsual = outcome.status === 200 && !outcome.headers && shouldKeepAlive && hasNoHeaders(outgoing);
  if (isUsual && socket?.writable && req.method !== 'HEAD') {
    const lines = `${headLinesOf(state)}Content-Length: ${length}\r\nDate: ${dateNow()}\r\n`;
    const kept = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keptFor / 1000)}\r\n`;
    // Cast: Node's types leave out its internal fields.
    const headed = outgoing as Headed;
    headed._header = `HTTP/1.1 200 OK\r\n${lines}${kept}\r\n`;
    headed._headerSent = true;
    socket.write(headed._header + text, encoding);
    outgoing.end();
  } else {
    outgoing.writeHead(outcome.status, { ...headersOf(outcome, state), 'Content-Length': length });
    outgoing.end(text, encoding);
  }
}

/** Whether no header was set on the response itself, such as `Connection: close`. */
function hasNoHeaders(outgoing: ServerResponse): boolean {
  return outgoing.getHeaderNames().length === 0;
}
