// Times as text: formatting and parsing RFC 3339. A page has thousands of them, and a Date for each would take longer
// than reading its row.

/** 9999-12-31T23:59:59.999Z, the last time that RFC 3339 can express. */
export const lastTime = 253_402_300_799_999;

const day = 86_400_000;
const mostDays = 512;
/** Character codes of dates, by day since 1970. */
const dates = new Map<number, readonly number[]>();

/** RFC 3339, UTC, with milliseconds, from epoch milliseconds as in a Date. */
export function timestamp(milliseconds: number): string {
  const whole = Math.trunc(milliseconds);
  const number = Math.floor(whole / day);
  const ofDay = whole - number * day;
  const hour = Math.trunc(ofDay / 3_600_000);
  const minute = Math.trunc(ofDay / 60_000) % 60;
  const second = Math.trunc(ofDay / 1000) % 60;
  const rest = ofDay % 1000;
  // In one call: concatenated pieces would have to be flattened later.
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

/** Character code of the last digit before the decimal point. */
function digit(number: number): number {
  return 0x30 + (Math.trunc(number) % 10);
}

/** The date followed by `T`. */
function dateOf(number: number, milliseconds: number): readonly number[] {
  const text = new Date(milliseconds).toISOString();
  const date = Array.from(text.slice(0, text.indexOf('T') + 1), (character) => character.charCodeAt(0));
  if (dates.size >= mostDays) dates.clear();
  dates.set(number, date);
  return date;
}

const hours = '([01]\\d|2[0-3]):([0-5]\\d)';
const form = new RegExp(
  `^(\\d{4}-\\d\\d-\\d\\d)(?:[T ]${hours}(?::([0-5]\\d|60)(?:\\.(\\d{1,9}))?)?(?:Z|([+-])${hours})?)?$`,
  'i',
);

/**
 * Epoch milliseconds of an RFC 3339 time, or of one whose end is left out: the zone (UTC then), the seconds, the time
 * of day. Undefined for anything else and for a day that does not exist. The platform's own parser accepts much more,
 * some of it in the machine's time zone, so the project uses this one only.
 */
export function parseTimestamp(text: string): number | undefined {
  const [, date, hour = 0, minute = 0, second = 0, fraction = 0, sign = '', zoneHour = 0, zoneMinute = 0] =
    form.exec(text) ?? [];
  if (date === undefined || !isDay(date)) return undefined;
  const east = (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === '-' ? -60_000 : 60_000);
  const minutes = Number(hour) * 60 + Number(minute);
  const whole = Date.parse(`${date}T00:00:00Z`) + (minutes * 60 + Number(second)) * 1000 - east;
  // A leap second ends a UTC day, and counts as the first second of the next.
  if (Number(second) === 60 && whole % day !== 0) return undefined;
  return whole + Math.trunc(Number(`0.${fraction}`) * 1000);
}

/** The same for a time written by an appliance; NaN for anything else. */
export function epochTimeOf(text: string): number {
  return parseTimestamp(text) ?? Number.NaN;
}

/** Whether the day exists: the platform turns 30 February into a day in March. */
export function isDay(date: string): boolean {
  const start = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(date);
}
