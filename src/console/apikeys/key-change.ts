// Previews the effect of the three ways to change an API key, and parses expiry times and addresses as people type
// them. Separate from the forms, so that the rules are tested without a browser.

import { canonicalBlock } from '../../model/addresses.ts';
import { parseAge } from '../../model/ages.ts';
import type { ChangeOp } from '../../model/json.ts';
import { parseTimestamp } from '../../model/timestamp.ts';

export const operations = {
  replace: {
    title: 'Edit all of it',
    explanation: 'What you enter below replaces everything that was there (replace).',
  },
  merge: {
    title: 'Add or change some',
    explanation: 'What you enter is set and everything else stays, also in objects inside the properties (merge).',
  },
  delete: {
    title: 'Remove some',
    explanation: 'What you tick is removed and everything else stays (delete).',
  },
} as const satisfies Record<ChangeOp, unknown>;

type Values = Readonly<Record<string, unknown>>;

export interface Difference {
  readonly name: string;
  readonly kind: 'added' | 'removed' | 'changed';
}

export function differences(before: Values, after: Values): Difference[] {
  const was = new Map(Object.entries(before));
  const is = new Map(Object.entries(after));
  const found: Difference[] = [];
  for (const [name, value] of is) {
    if (!was.has(name)) found.push({ name, kind: 'added' });
    else if (JSON.stringify(was.get(name)) !== JSON.stringify(value)) found.push({ name, kind: 'changed' });
  }
  for (const name of was.keys()) if (!is.has(name)) found.push({ name, kind: 'removed' });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const minute = 60_000;

type Typed<T> = { readonly value: T; readonly problem?: undefined } | { readonly problem: string };

/**
 * Expiry of a key: a date in UTC, an age counted from `now` to a full minute, which can be typed again, or null if the
 * text is empty. Milliseconds since 1970.
 */
export function endIn(text: string, now: number): Typed<number | null> {
  if (text === '') return { value: null };
  const age = parseAge(text);
  if (age !== undefined) return { value: Math.ceil((now + age) / minute) * minute };
  const value = parseTimestamp(text.replace(/ ?UTC$/, ''));
  if (value !== undefined) return { value };
  return { problem: 'Enter a date such as 2027-01-31 or 2027-01-31 08:00, or an age such as 90d.' };
}

/** Text for the expiry field. */
export function endText(milliseconds: number | null): string {
  return milliseconds === null
    ? ''
    : new Date(milliseconds)
        .toISOString()
        .replace('T', ' ')
        .replace(/(:00)?\.000Z$/, ' UTC');
}

/** Addresses and blocks, separated by blanks, commas or line breaks. */
export function addressesIn(text: string): Typed<string[]> {
  const given = text.split(/[\s,]+/).filter((part) => part !== '');
  const wrong = given.find((part) => canonicalBlock(part) === undefined);
  if (wrong === undefined) return { value: given };
  return { problem: `“${wrong}” is neither an IPv4 or IPv6 address nor a block of them such as 192.0.2.0/24.` };
}

/** Whether a key admits requests. */
export function stateOf(
  { active, expiresAt }: { readonly active: boolean; readonly expiresAt: number | null },
  now: number,
): 'active' | 'disabled' | 'expired' {
  if (!active) return 'disabled';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active';
}

/** Days before its end from which an active key counts as expiring. */
const expiringDays = 30;

export function isExpiring(key: { readonly active: boolean; readonly expiresAt: number | null }, now: number): boolean {
  const { expiresAt } = key;
  return stateOf(key, now) === 'active' && expiresAt !== null && expiresAt - now < expiringDays * 86_400_000;
}
