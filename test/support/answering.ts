// Replies of a server, for tests of the server that need no app.
import type { ApiRequest } from '../../src/http/request.ts';
import type { Reply } from '../../src/http/request-log.ts';

/** Replies with JSON. */
export function replyWith(body: object): Reply {
  return { outcome: { status: 200, body } };
}

/** Replies with the text, in one piece. */
export function replyText(content: string): Reply {
  return { outcome: { status: 200, body: {}, content, headers: { 'Content-Type': 'text/plain' } } };
}

/** The body, however long it is. */
export async function bodyText({ body }: ApiRequest): Promise<string> {
  return new TextDecoder().decode(await body.read(Number.POSITIVE_INFINITY, undefined));
}
