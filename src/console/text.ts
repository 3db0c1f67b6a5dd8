// Values as people read and type them: JSON objects, ids, sizes, durations and counts.
import { type ExactJson, numberProblemIn, parseExactly } from '../api/exact-json.ts';
import type { Kem } from '../model/kems.ts';

type Parsed =
  | { readonly value: Record<string, unknown>; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: string };

/** Plural names of resources, by the first word of their actions and flags. */
export const resourceNames: ReadonlyMap<string, string> = new Map([
  ['keyring', 'keyrings'],
  ['asym', 'asymmetric keyrings'],
  ['key', 'managed keys'],
  ['kmip', 'objects of KMIP'],
  ['tang', 'Tang key pairs'],
  ['asset', 'assets'],
  ['user', 'users'],
  ['account', 'accounts'],
  ['apikey', 'API keys'],
  ['approval', 'approvals'],
]);

/** The KEM that wraps a ring's keys. */
export function kemText(kem: Kem, how: 'short' | 'whole' = 'short'): string {
  if (kem === 'x25519') return 'X25519';
  return how === 'short' ? 'Hybrid' : 'Hybrid: ML-KEM-768 and X25519';
}

/** Facts shown for rings of any kind, if known. */
export interface RingTraits {
  readonly custody?: 'client' | 'server';
  readonly kem?: Kem;
  readonly offlineDecrypt?: boolean;
}

/** A ring's tags: its custody, its KEM, and whether its private key alone opens files. */
export function ringTraits({ custody, kem, offlineDecrypt }: RingTraits): string[] {
  return [custody && `custody ${custody}`, kem && kemText(kem), offlineDecrypt && 'files open offline'].filter(
    (trait) => trait !== undefined && trait !== false,
  );
}

/** An empty text gives an empty object. */
export function parseObject(text: string): Parsed {
  if (text.trim() === '') return { value: {} };
  let exact: ExactJson;
  try {
    exact = parseExactly(text);
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.` };
  }
  const { value } = exact;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { problem: 'This has to be an object: {"name": "value"}.' };
  }
  const problem = numberProblemIn(exact);
  return problem === undefined
    ? { value: value as Record<string, unknown> }
    : { problem: `Something in it ${problem}.` };
}

export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}

/** The end of an id, which tells it from others. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}

/** Creation time of an id, from the ULID's timestamp, in milliseconds since 1970; undefined for any other text. */
export function idTime(id: string): number | undefined {
  const [, text] = /^[a-z]+_([0-7][0-9a-hjkmnp-tv-z]{9})[0-9a-hjkmnp-tv-z]{16}$/.exec(id) ?? [];
  if (text === undefined) return undefined;
  return [...text].reduce((time, digit) => time * 32 + '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit), 0);
}

export function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const text = unit === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
  return `${text} ${units[unit] === 'bytes' && value === 1 ? 'byte' : units[unit]}`;
}

/** `2026-01-02 03:04:05 UTC` */
export function utcText(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `2026-01-02 04:04:05`, in the reader's time zone. */
export function localText(date: Date): string {
  return localForm(date).slice(0, 19).replace('T', ' ');
}

/** `2026-01-02T04:04:05.006`, in the reader's time zone. */
export function localForm(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

/** The time in the reader's zone and, if that differs, in UTC. */
export function exactText(date: Date): string {
  const [local, utc] = [localText(date), utcText(date)];
  return utc.startsWith(local) ? utc : `${local} (${utc})`;
}

const relativeSteps: readonly (readonly [below: number, length: number, name: string])[] = [
  [3_600, 60, 'min'],
  [86_400, 3_600, 'h'],
  [30 * 86_400, 86_400, 'd'],
];

/** How long ago, or in how long: `3 min ago`, `in 2 d`; the date if it is more than a month away. */
export function relativeText(date: Date, now: number): string {
  const seconds = Math.round((date.getTime() - now) / 1000);
  const distance = Math.abs(seconds);
  if (distance < 60) return seconds > 0 ? 'in a moment' : 'just now';
  const [, length, name] = relativeSteps.find(([below]) => distance < below) ?? [];
  if (length === undefined || name === undefined) return localText(date).slice(0, 10);
  const span = `${Math.floor(distance / length)} ${name}`;
  return seconds > 0 ? `in ${span}` : `${span} ago`;
}

const steps: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];

/** A duration in the largest unit of which there is at least one, rounded down. */
export function spanText(seconds: number): string {
  const [length, name] = steps.find(([each]) => seconds >= each) ?? [1, 'second'];
  const count = Math.max(0, Math.floor(seconds / length));
  return count === 1 ? `1 ${name}` : `${count} ${name}s`;
}

export function upperFirst(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** `1 API key`, `2 API keys` */
export function countedText(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function countText(count: number): string {
  return count.toLocaleString('en');
}
