// The answer of an operation as it is sent. A short text is a string; a long one is made in pieces, between which
// others have their turn, and goes out piece by piece as it is read, in room that was taken for it beforehand.
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

/** In characters; what is longer takes room. */
const longestShort = 16 * 1024;

const encoder = new TextEncoder();

/** Throws `unavailable` where there is no room for it. */
export function encodeAnswer(input: EndpointInput, ctx: OperationContext, given: unknown): Outcome {
  const { appliance, endpoint, handle, known } = input;
  const { binary, lines, paginated, path, text } = endpoint;
  const { world, logger } = appliance;
  const { room } = known.request;
  const answer = known.cookie?.taken(given, world.random) ?? given;
  // Cast: the types of the routes see to it that lists answer pages and all others objects.
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

/** In the words of a surface; the endpoint's own status is recorded. */
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

/** A list's answer is made once the transaction is over, between turns of others. */
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

/** As an answer of status 200. Throws `unavailable` where it is long, and there is no room for it. */
function answeredText(text: string, room: AnswerRoom | undefined, holder: Holder): Outcome {
  if (text.length <= longestShort) return { status: 200, body: {}, content: text };
  const bytes = encoder.encode(text);
  room?.takeNow(bytes.length, holder);
  return sentInPieces(piecesOf(bytes), room);
}

/** The same of a list, for which room was taken. */
function answeredListText(text: string, room: AnswerRoom | undefined): Outcome {
  if (text.length > longestShort) return sentInPieces(piecesOf(encoder.encode(text)), room);
  room?.left(0);
  return { status: 200, body: {}, content: text };
}

/** Copies: a part of an array would keep the whole of it. */
function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieceLength) pieces.push(bytes.slice(at, at + pieceLength));
  return pieces;
}

/** The same of one whose items are written, or are to be. */
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
