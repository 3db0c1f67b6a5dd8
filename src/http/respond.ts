// The single map from what went wrong to status and body, and the making of responses.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ErrorBody } from '../api/endpoint.ts';
import { pieceLength } from '../core/pages.ts';
import { type ErrorCode, KmsError } from '../errors.ts';
import { stateHeader } from '../model/names.ts';

const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid: 400,
  conflict: 400,
  unauthenticated: 401,
  forbidden: 403,
  quota: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'too-large': 413,
  'unsupported-media': 415,
  'asset-invalid': 422,
  'rate-limited': 429,
  corrupt: 503,
  sealed: 503,
  unavailable: 503,
};

const internalError: ErrorBody = { message: 'internal error' };

/** An answer on its way out. */
export interface Outcome {
  readonly status: number;
  readonly body: object;
  /** The status that is sent, where a surface has another word for the one that is recorded. */
  readonly sentStatus?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in place of the body. */
  readonly stream?: ReadableStream<Uint8Array>;
  /** Sent in place of the body, as it is; null where the status has none. */
  readonly content?: string | Uint8Array<ArrayBuffer> | null;
  /** What broke, for the log alone. */
  readonly cause?: unknown;
  /** Why it was refused, for the log alone. */
  readonly reason?: string;
}

/** An outcome and what the log says of the request. */
export interface Served {
  outcome: Outcome;
  readonly action?: string;
  readonly keyid?: string;
  /** How far the appliance is, for whoever has a credential: the header `Kms-State`. */
  state?: string | undefined;
  /** For who counts: the tenant's id, the verdict of authorization where there was one, and the ring's name. */
  readonly tenant?: string;
  readonly granted?: boolean;
  readonly ringname?: string;
  /** The statuses of the things that one request did, where it may do several. */
  readonly did?: readonly number[] | undefined;
  /** It came without a credential, under a name that nobody has. */
  readonly byNobody?: boolean;
}

export function answered(body: object): Outcome {
  return { status: 200, body };
}

/** Pieces that go out before others have a turn of the event loop: 1 MiB, of a millisecond or two. */
const piecesInOneGo = 16;

/**
 * Of one piece or more: none is kept once it was asked for; `onSent` is told of its length. To whoever reads quickly
 * all of them would go out in one turn of the event loop. They wait for the next one alone, in no queue: how long they
 * wait counts as the reader's slowness.
 */
export function inPieces(pieces: readonly Uint8Array[], onSent?: (bytes: number) => void): ReadableStream<Uint8Array> {
  const waiting = [...pieces].reverse();
  let sent = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        if (sent > 0 && sent % piecesInOneGo === 0) await nextTurn();
        const piece = waiting.pop();
        // None is left where somebody cancelled meanwhile.
        if (!piece) return;
        controller.enqueue(piece);
        sent++;
        onSent?.(piece.length);
        if (waiting.length === 0) controller.close();
      },
      cancel() {
        waiting.length = 0;
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * An answer that is made while it is read: nothing is asked of `text` before. `broke` is told why it breaks off, before
 * anybody can end it. Whoever does not send it has to cancel it.
 */
export function streamed(
  contentType: string,
  text: AsyncIterable<string | Uint8Array>,
  broke: (cause: unknown) => void,
): Outcome {
  const chunks = inChunks(text);
  let isRead = false;
  const next = (): ReturnType<typeof chunks.next> =>
    chunks.next().catch((cause: unknown) => {
      broke(cause);
      throw cause;
    });
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        isRead = true;
        const { done, value } = await next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      // A generator that was not begun does not end what it reads from.
      cancel: async () => void (await (isRead ? chunks.return(undefined) : text[Symbol.asyncIterator]().return?.())),
    },
    { highWaterMark: 0 },
  );
  return { status: 200, body: {}, headers: { 'Content-Type': contentType }, stream };
}

const encoder = new TextEncoder();

/** Text in pieces of a good size; bytes, which stand for themselves, as they come. */
async function* inChunks(text: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting = '';
  for await (const part of text) {
    if (typeof part !== 'string') {
      yield part;
      continue;
    }
    waiting += part;
    if (waiting.length < pieceLength) continue;
    yield encoder.encode(waiting);
    waiting = '';
  }
  if (waiting !== '') yield encoder.encode(waiting);
}

/**
 * The outcome of any thrown value; all but an error that is meant to be read is an internal one that tells nothing.
 * `silent400` empties the body of a 400.
 */
export function refused(error: unknown, silent400?: boolean): Outcome {
  const status = error instanceof KmsError ? statuses[error.code] : undefined;
  if (!(error instanceof KmsError) || status === undefined) return { status: 500, body: internalError, cause: error };
  if (status === 400 && silent400) return { status, body: {} };
  const body = error.body ?? bodyOf(error);
  if (status === 401) return { status, body, headers: { 'WWW-Authenticate': 'Bearer' } };
  if (error.retryAfter !== undefined) {
    return { status, body, headers: { 'Retry-After': String(Math.max(1, Math.ceil(error.retryAfter))) } };
  }
  if (error.logReason !== undefined) return { status, body, reason: error.logReason };
  // Being sealed is a state, not a failure.
  return status >= 500 && error.code !== 'sealed' ? { status, body, cause: error } : { status, body };
}

/** The outcome when the transaction itself failed: nothing of the request is durable. */
export function failed(error: unknown): Outcome {
  const outcome = refused(error);
  return outcome.status >= 500 ? outcome : { status: 500, body: internalError, cause: error };
}

/** However long what they repeat: no refusal is longer than 64 KiB. */
const longestText = 1024;
export const mostFields = 20;

function bodyOf({ message, fields }: KmsError): ErrorBody {
  if (!fields) return { message: clipped(message) };
  const few = Object.entries(fields).slice(0, mostFields);
  const errors = Object.fromEntries(few.map(([field, problem]) => [clipped(field), clipped(problem)]));
  return { message: clipped(message), errors };
}

function clipped(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText - 1).toWellFormed()}…`;
}

/** Sent with every answer. Plain objects: the Node adapter writes them as they are. */
const standardHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

const { 'Content-Type': _, ...withoutContent } = standardHeaders;

/** @param state of the appliance, `<appliance>.<tenant>.<epoch>.<transactions>`, for callers that it knows. */
export function headersOf({ headers, content }: Outcome, state?: string): Readonly<Record<string, string>> {
  const standard = content === null ? withoutContent : standardHeaders;
  const always = state === undefined ? standard : { ...standard, [stateHeader]: state };
  return headers ? { ...always, ...headers } : always;
}

const standardLines = Object.entries(standardHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

/** The same as lines of a head, of an outcome without headers of its own. */
export function headLinesOf(state: string | undefined): string {
  return state === undefined ? standardLines : `${standardLines}${stateHeader}: ${state}\r\n`;
}

/** The whole of an answer that is sent at once, null where it has no body; undefined for one that is sent in pieces. */
export function wholeOf({ body, stream, content }: Outcome): string | Uint8Array | null | undefined {
  if (stream || (content instanceof Uint8Array && content.length > pieceLength)) return undefined;
  return content === undefined ? JSON.stringify(body) : content;
}

export function respond(outcome: Outcome, state?: string): Response {
  const { status, body, stream, content } = outcome;
  const init = { status, headers: headersOf(outcome, state) };
  if (content instanceof Uint8Array && content.length > pieceLength) return inParts(content, init);
  return new Response(content === undefined ? (stream ?? JSON.stringify(body)) : content, init);
}

/** A file that all answers share: none of them makes a copy of more than a part, as TLS would of the whole. */
function inParts(content: Uint8Array, { status, headers }: { status: number; headers: object }): Response {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += pieceLength) parts.push(content.subarray(at, at + pieceLength));
  return new Response(inPieces(parts), { status, headers: { ...headers, 'Content-Length': String(content.length) } });
}

export const unknownPath = new KmsError('not-found', 'no such path');
