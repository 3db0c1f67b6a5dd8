// What an API key will be after a change, by the rules of the three ways to change one, so that it can be seen before it is sent.

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
} as const;

export type Operation = keyof typeof operations;

type Values = Readonly<Record<string, unknown>>;

/** Names of flags compare without regard to case: what is given takes the place of each that differs in case alone. */
export function flagsAfter(current: Values, operation: Operation, given: Values): Values {
  if (operation === 'replace') return given;
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const kept = Object.entries(current).filter(([name]) => !names.has(name.toLowerCase()));
  return Object.fromEntries(operation === 'merge' ? [...kept, ...Object.entries(given)] : kept);
}

export function propsAfter(current: Values, operation: Operation, given: Values): Values {
  if (operation === 'replace') return given;
  const result = new Map(Object.entries(current));
  for (const [name, value] of Object.entries(given)) {
    const old = result.get(name);
    if (operation === 'delete') result.delete(name);
    else result.set(name, isObject(old) && isObject(value) ? propsAfter(old, 'merge', value) : value);
  }
  return Object.fromEntries(result);
}

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

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
