// Times as people type them: RFC 3339, in UTC unless a zone is given, or milliseconds since 1970. An implausible number
// is refused with the time it probably means.
import { KmsError } from '../../errors.ts';
import { isDay, parseTimestamp, timestamp } from '../../model/timestamp.ts';

/** The last time that RFC 3339 can express. */
export const lastTime = 253_402_300_799_999;

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
