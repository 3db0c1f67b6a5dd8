// The answer of an operation as it is sent. A short text is a string. A long one is made in pieces, yielding to other
// requests in between, and is streamed as the client reads it, in room reserved beforehand.
import { pieceLength, WrittenItems, type WrittenPage } from '../core/pages.ts';
import type { JsonObject } from '../model/json.ts';
import type { Page } from '../store/sql.ts';
import type { Turn } from './appliance-port.ts';
import type { Codec } from './codec.ts';
import { type EndpointInput, type KnownRequest, pageBody } from './input.ts';
import type { OperationContext } from './operation-context.ts';
import type { AnswerRoom, Holder } from './request.ts';
import { brokenOff } from './request-log.ts';
import { answered, inPieces, type Outcome, streamed } from './respond.ts';

/** In characters; longer answers need reserved room. */
const longestShort = 16 * 1024;

const encoder = new TextEncoder();

/** Throws `unavailable` if there is no room for the answer. */
export function encodeAnswer(input: EndpointInput, ctx: OperationContext, given: unknown): Outcome {
  const { appliance, endpoint, handle, known } = input;
  const { binary, lines, paginated, path, text } = endpoint;
  const { world, logger } = appliance;
  const { room } = known.request;
  const answer = known.cookie?.taken(given, world.random) ?? given;
  // Cast: the route types ensure that lists answer pages and all others objects.
  const body = paginated
    ? pageBody(endpoint, handle, world, input, answer as Page<unknown> | WrittenPage<unknown>)
    : (answer as JsonObject);
  if (known.codec) return encodeBy(known.codec, input, ctx, body);
  if (paginated) return answered(body);
  if (binary || lines) {
    const pieces = answer as AsyncIterable<string | Uint8Array>;
    const outcome = streamed(lines ?? 'application/octet-stream', pieces, brokenOff(logger, path, room));
    ctx.stream = outcome.stream;
    return outcome;
  }
  const holder = { tenant: handle.tenant.id, caller: ctx.callerId };
  if (!text) return answeredText(JSON.stringify(body), room, holder);
  const made = answeredText(answer as string, room, holder);
  return { ...made, headers: { ...made.headers, 'Content-Type': text } };
}

/** Encodes the answer for a surface; the endpoint's own status is recorded. */
function encodeBy(codec: Codec, input: EndpointInput, ctx: OperationContext, answer: JsonObject): Outcome {
  const { endpoint, handle, known, raw } = input;
  const { room } = known.request;
  const came = raw.body?.problem ? undefined : raw.body?.came;
  const { status: sentStatus, text } = codec.encode(answer, came ?? {});
  if (text === undefined) return { status: 200, body: {}, content: null, sentStatus };
  const holder = { tenant: handle.tenant.id, caller: ctx.callerId };
  const made = endpoint.paginated ? answeredListText(text, room) : answeredText(text, room, holder);
  return { ...made, sentStatus };
}

/** Writes a list's answer after the transaction, yielding to other requests in between. */
export async function listAnswer(
  outcome: Outcome,
  { request: { room }, codec }: KnownRequest,
  turn: Turn,
): Promise<Outcome> {
  if (outcome.status !== 200) {
    room?.left(0);
    return outcome;
  }
  if (codec) return outcome;
  // Cast: lists answer pages.
  const body = outcome.body as ReturnType<typeof pageBody>;
  const made = await answeredList(body, room, turn);
  return { ...made, headers: { ...outcome.headers, ...made.headers } };
}

/** An answer of status 200. Throws `unavailable` if it is long and there is no room for it. */
function answeredText(text: string, room: AnswerRoom | undefined, holder: Holder): Outcome {
  if (text.length <= longestShort) return { status: 200, body: {}, content: text };
  const bytes = encoder.encode(text);
  room?.takeNow(bytes.length, holder);
  return sentInPieces(piecesOf(bytes), room);
}

/** `answeredText` for a list, whose room was reserved before the query. */
function answeredListText(text: string, room: AnswerRoom | undefined): Outcome {
  if (text.length > longestShort) return sentInPieces(piecesOf(encoder.encode(text)), room);
  room?.left(0);
  return { status: 200, body: {}, content: text };
}

/** Copies: a subarray would keep the whole buffer alive. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieceLength) pieces.push(bytes.slice(at, at + pieceLength));
  return pieces;
}

/** The answer of a list whose items are already written, or are written here. */
export async function answeredList(
  { data, ...rest }: { readonly data: readonly unknown[] | WrittenItems<unknown> },
  room: AnswerRoom | undefined,
  turn: Turn | undefined,
): Promise<Outcome> {
  await turn?.();
  const items = data instanceof WrittenItems ? data : await written(data, turn);
  const made = items.between('{"data":[', `],${JSON.stringify(rest).slice(1)}`);
  return typeof made === 'string' ? answeredListText(made, room) : sentInPieces(made, room);
}

async function written(data: readonly unknown[], turn: Turn | undefined): Promise<WrittenItems<unknown>> {
  const items = new WrittenItems();
  for (const item of data) if (items.add(item)) await turn?.();
  return items;
}

function sentInPieces(pieces: readonly Uint8Array[], room: AnswerRoom | undefined): Outcome {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  room?.left(length);
  let left = length;
  const stream = inPieces(pieces, (sent) => {
    left -= sent;
    room?.left(left);
  });
  return { status: 200, body: {}, stream, headers: { 'Content-Length': String(length) } };
}
