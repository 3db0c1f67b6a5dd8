// Times as texts. A page has thousands of them, and a Date for each would take longer than reading its row.

const day = 86_400_000;
const mostDays = 512;
/** The characters of dates, by their day since 1970. */
const dates = new Map<number, readonly number[]>();

/** RFC 3339, UTC, with milliseconds; of epoch milliseconds, as a Date has them. */
export function timestamp(milliseconds: number): string {
  const whole = Math.trunc(milliseconds);
  const number = Math.floor(whole / day);
  const ofDay = whole - number * day;
  const hour = Math.trunc(ofDay / 3_600_000);
  const minute = Math.trunc(ofDay / 60_000) % 60;
  const second = Math.trunc(ofDay / 1000) % 60;
  const rest = ofDay % 1000;
  // All at once: of pieces, others would have to make one text first.
  return String.fromCharCode(
    ...(dates.get(number) ?? dateOf(number, whole)),
    digit(hour / 10),
    digit(hour),
    0x3a,
    digit(minute / 10),
    digit(minute),
    0x3a,
    digit(second / 10),
    digit(second),
    0x2e,
    digit(rest / 100),
    digit(rest / 10),
    digit(rest),
    0x5a,
  );
}

/** The last one before the point. */
function digit(number: number): number {
  return 0x30 + (Math.trunc(number) % 10);
}

/** With the `T` behind it. */
function dateOf(number: number, milliseconds: number): readonly number[] {
  const text = new Date(milliseconds).toISOString();
  const date = Array.from(text.slice(0, text.indexOf('T') + 1), (character) => character.charCodeAt(0));
  if (dates.size >= mostDays) dates.clear();
  dates.set(number, date);
  return date;
}
