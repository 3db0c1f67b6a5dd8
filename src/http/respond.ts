// The one map from errors to status and body, and the making of responses.
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

/** An answer before it is sent. */
export interface Outcome {
  readonly status: number;
  readonly body: object;
  /** The status to send, if a surface uses another than the recorded one. */
  readonly sentStatus?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent instead of the body. */
  readonly stream?: ReadableStream<Uint8Array>;
  /** Sent instead of the body, as is; null if the status has none. */
  readonly content?: string | Uint8Array<ArrayBuffer> | null;
  /** The failure's cause, for the log alone. */
  readonly cause?: unknown;
  /** The refusal's reason, for the log, and for surfaces that have room for it. */
  readonly reason?: string;
  /** Told to somebody who is not known by a credential: a listener with connections of its own keeps them shortly. */
  readonly isToStranger?: boolean;
}

/** An outcome with what the log and the metrics say of the request. */
export interface RequestResult {
  outcome: Outcome;
  readonly action?: string;
  readonly keyid?: string;
  /** The header `Kms-State`, for authenticated callers. */
  state?: string | undefined;
  /** For metrics: tenant id, authorization verdict, ring name. */
  readonly tenant?: string;
  readonly granted?: boolean;
  readonly ringname?: string;
  /** For metrics, too: the dialect that it came in; absent for the native interface. */
  readonly dialect?: string | undefined;
  /** The statuses of the several acts in one request. */
  readonly did?: readonly number[] | undefined;
  /** The check that refused a program's login; absent for other requests. */
  readonly refusedBy?: string | undefined;
  /** A request without a credential, under an unknown name. */
  readonly byNobody?: boolean;
}

export function answered(body: object): Outcome {
  return { status: 200, body };
}

/** Pieces sent before yielding to the event loop: 1 MiB, about a millisecond or two. */
const piecesInOneGo = 16;

/**
 * A stream of one or more pieces; each is released when it is read, and `onSent` gets its length. To a fast reader all
 * would go out in one turn of the event loop, so it waits for the next turn after every few pieces. It waits in no
 * queue: that time counts as slowness of the reader.
 */
export function inPieces(pieces: readonly Uint8Array[], onSent?: (bytes: number) => void): ReadableStream<Uint8Array> {
  const waiting = [...pieces].reverse();
  let sent = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        if (sent > 0 && sent % piecesInOneGo === 0) await nextTurn();
        const piece = waiting.pop();
        // None is left if the stream was cancelled in the meantime.
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
 * An answer that is made while it is read; `text` is not touched before. `broke` gets the cause of a failure before the
 * answer can be ended. A caller that does not send the answer has to cancel its stream.
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
      // A generator that was never started does not close its source.
      cancel: async () => void (await (isRead ? chunks.return(undefined) : text[Symbol.asyncIterator]().return?.())),
    },
    { highWaterMark: 0 },
  );
  return { status: 200, body: {}, headers: { 'Content-Type': contentType }, stream };
}

const encoder = new TextEncoder();

/** Text in chunks of about `pieceLength`; bytes as they come. */
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
 * The outcome of any thrown value; all but errors meant for the client become an internal error without details.
 * `silent400` empties the body of a 400.
 */
export function refused(error: unknown, silent400?: boolean): Outcome {
  const status = error instanceof KmsError ? statuses[error.code] : undefined;
  if (!(error instanceof KmsError) || status === undefined) return { status: 500, body: internalError, cause: error };
  if (status === 400 && silent400) return { status, body: {} };
  const body = error.body ?? bodyOf(error);
  if (status === 401) return { status, body, headers: { 'WWW-Authenticate': 'Bearer' } };
  if (error.retryAfter !== undefined) {
    const headers = { 'Retry-After': String(Math.max(1, Math.ceil(error.retryAfter))) };
    return { status, body, headers, ...(error.logReason !== undefined && { reason: error.logReason }) };
  }
  if (error.logReason !== undefined) return { status, body, reason: error.logReason };
  // Sealed is a state, not a failure.
  return status >= 500 && error.code !== 'sealed' ? { status, body, cause: error } : { status, body };
}

/** Ends the transaction of a call that a surface planned on data that does not hold there. */
export class StaleCall extends Error {}

/** The outcome of such a call, which the surface plans again. It is not recorded, not logged and not counted. */
export const staleCall: Outcome = Object.freeze({ status: 409, body: Object.freeze({}) });

/** The outcome of a transaction that itself failed: nothing of the request is durable. */
export function failed(error: unknown): Outcome {
  if (error instanceof StaleCall) return staleCall;
  const outcome = refused(error);
  return outcome.status >= 500 ? outcome : { status: 500, body: internalError, cause: error };
}

/** In characters, however long the repeated input: no refusal is longer than 64 KiB. */
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

/** @param state of the appliance, `<appliance>.<tenant>.<epoch>.<transactions>`, for authenticated callers. */
export function headersOf({ headers, content }: Outcome, state?: string): Readonly<Record<string, string>> {
  const standard = content === null ? withoutContent : standardHeaders;
  const always = state === undefined ? standard : { ...standard, [stateHeader]: state };
  return headers ? { ...always, ...headers } : always;
}

const standardLines = Object.entries(standardHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

/** `headersOf` as header lines, for an outcome without headers of its own. */
export function headLinesOf(state: string | undefined): string {
  return state === undefined ? standardLines : `${standardLines}${stateHeader}: ${state}\r\n`;
}

/** The whole content of an answer that is sent at once, null if it has no body; undefined if it is sent in pieces. */
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

/** Sends a file that all answers share in parts, so that none copies more than a part, as TLS would copy the whole. */
function inParts(content: Uint8Array, { status, headers }: { status: number; headers: object }): Response {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += pieceLength) parts.push(content.subarray(at, at + pieceLength));
  return new Response(inPieces(parts), { status, headers: { ...headers, 'Content-Length': String(content.length) } });
}

export const unknownPath = new KmsError('not-found', 'no such path');

/** Runs work that waited for the commit; returns the refusal if it fails. */
export async function refusalOf(work: () => Promise<void>): Promise<Outcome | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return refused(error);
  }
}
