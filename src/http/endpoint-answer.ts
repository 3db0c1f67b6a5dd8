// What an operation answers becomes what is sent: in its transaction as a text in room that it has, or for a list after
// it, in the room that was taken for that.
import type { WrittenPage } from '../core/pages.ts';
import type { JsonObject } from '../model/json.ts';
import type { Page } from '../store/sql.ts';
import { answeredList, answeredListText, answeredText, type Turn } from './answer-text.ts';
import type { Codec } from './codec.ts';
import type { EndpointInput, KnownRequest } from './endpoint-input.ts';
import { pageBody } from './input.ts';
import type { OperationContext } from './operation-context.ts';
import { brokenOff } from './request-log.ts';
import { answered, type Outcome, streamed } from './respond.ts';

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
