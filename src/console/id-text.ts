// Ids where there is little room.

/** The end of an id, which tells it from others. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
