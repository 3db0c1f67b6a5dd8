// Times as the wire has them.

/** RFC 3339, UTC, with milliseconds. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
