// The text of an answer. A short one is a string; a long one is made in pieces, between which others have their turn,
// and goes out piece by piece as it is read, in room that was taken for it beforehand.
import { pieceLength, WrittenItems } from '../core/pages.ts';
import type { AnswerRoom, Holder } from './request.ts';
import { inPieces, type Outcome } from './respond.ts';

/** In characters; what is longer takes room. */
const longestShort = 16 * 1024;

const encoder = new TextEncoder();

/** What is to be awaited between the parts of long work. */
export type Turn = () => Promise<void> | undefined;

/** As an answer of status 200. Throws `unavailable` where it is long, and there is no room for it. */
export function answeredText(text: string, room: AnswerRoom | undefined, holder: Holder): Outcome {
  if (text.length <= longestShort) return { status: 200, body: {}, content: text };
  const bytes = encoder.encode(text);
  room?.takeNow(bytes.length, holder);
  return sentInPieces(piecesOf(bytes), room);
}

/** The same of a list, for which room was taken. */
export function answeredListText(text: string, room: AnswerRoom | undefined): Outcome {
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
