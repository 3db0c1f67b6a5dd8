// Times as people type them: RFC 3339, in UTC unless a zone is given, or milliseconds since 1970; in the past also an
// age, today and yesterday. An implausible number is refused with the time it probably means.
import { KmsError } from '../../errors.ts';
import { parseAge } from '../../model/ages.ts';
import { isDay, lastTime, parseTimestamp, timestamp } from '../../model/timestamp.ts';

/** Whether RFC 3339 can express a time to come. */
export function isWritable(time: number): boolean {
  return time <= lastTime;
}

/** `others` names further forms that the option `name` accepts. Throws `usage`. */
export function readTime(given: string, name: string, others = ''): number {
  // The years 2001 to 2286: shorter numbers are seconds or days, longer ones microseconds.
  const milliseconds = /^[1-9][0-9]{12}$/.test(given) ? Number(given) : parseTimestamp(given);
  if (milliseconds !== undefined) return milliseconds;
  const [date] = /^\d{4}-\d\d-\d\d/.exec(given) ?? [];
  if (date !== undefined && !isDay(date)) throw new KmsError('usage', `${name}: there is no day ${date}`);
  const known = 'milliseconds since 1970 or a time such as 2026-01-02T03:04:05Z';
  const what = others === '' ? known : `${known.replace(' or ', ', ')}${others}`;
  const meant = probably(given);
  throw new KmsError(
    'usage',
    `${name}: expected ${what}, got "${given}"${meant === undefined ? '' : `; did you mean ${meant}?`}`,
  );
}

const day = 86_400_000;
/** Ten years: more is a mistake, and sums of times stay within the range of dates. */
export const longestAge = 3650 * day;

/** A time in the past: as `readTime` has it, an age before now, or the beginning of today or yesterday. */
export function readPastTime(given: string, name: string): number {
  const age = parseAge(given);
  if (age !== undefined && age <= longestAge) return Date.now() - age;
  return beginningOf(given) ?? readTime(given, name, ', an age such as 24h or 7d, today or yesterday');
}

/** The first moment of `today` or `yesterday`, in UTC unless a zone such as `+02:00` follows. */
function beginningOf(given: string): number | undefined {
  const form = /^(today|yesterday)(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))?$/i;
  const [, word = '', sign, hours = 0, minutes = 0] = form.exec(given) ?? [];
  if (word === '') return undefined;
  const east = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000);
  const days = Math.floor((Date.now() + east) / day) - (word.toLowerCase() === 'today' ? 0 : 1);
  return days * day - east;
}

/** Guesses what digits mean: a date, with or without a time of day, else seconds, microseconds or nanoseconds. */
function probably(given: string): string | undefined {
  const date = /^(\d{4})-?(\d\d)-?(\d\d)(?:[T ]?(\d\d):?(\d\d)(?::?(\d\d))?(Z|[+-]\d\d:?\d\d)?)?$/i.exec(given);
  if (date) {
    const [, year, month, day, hour, minute, second = '00', zone = 'Z'] = date;
    const clock = hour === undefined ? '' : `T${hour}:${minute}:${second}${zone.replace(/^(...)(..)$/, '$1:$2')}`;
    const text = `${year}-${month}-${day}${clock}`;
    const at = parseTimestamp(text);
    if (at !== undefined && at >= earliest) return text;
  }
  if (!/^[0-9]{9,19}$/.test(given)) return undefined;
  const at = Number(given) * (given.length < 12 ? 1000 : given.length < 16 ? 1 : given.length < 18 ? 1e-3 : 1e-6);
  return at >= earliest && at <= lastTime ? timestamp(at) : undefined;
}

/** The year 2000: nothing here is older. */
const earliest = 946_684_800_000;
