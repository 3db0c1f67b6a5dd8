// A moment: in UTC, so that people in different places speak of the same, with the reader's own time when they point at it.

/** `at`: milliseconds, or RFC 3339. */
export function Time({ at }: { readonly at: number | string }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{String(at)}</span>;
  return (
    <time datetime={date.toISOString()} title={`${date.toLocaleString()} in your time zone`}>
      {utcText(date)}
    </time>
  );
}

/** `2026-01-02 03:04:05 UTC` */
export function utcText(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
