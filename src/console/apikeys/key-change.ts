// A key change is what an API key will be afterwards, by the rules of the three ways to change one, so that it can be
// seen before it is sent. Apart from the form, so that the rules are tested without a browser.

import type { ChangeOp } from '../../model/json.ts';

export const operations = {
  replace: {
    title: 'Edit all of it',
    explanation: 'What stands below takes the place of all that was there (replace).',
  },
  merge: {
    title: 'Add or change some',
    explanation: 'What you give is set, everything else stays; objects inside the properties too (merge).',
  },
  delete: {
    title: 'Remove some',
    explanation: 'What you tick is removed, everything else stays (delete).',
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
