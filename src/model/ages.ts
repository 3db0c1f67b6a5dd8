// Ages, lifetimes and waits as people write them: a whole number and a unit, such as `30s`, `15m`, `12h` or `7d`.

/** Milliseconds, largest unit first. */
const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const;

function isUnit(text: string): text is keyof typeof units {
  return Object.hasOwn(units, text);
}

/** Milliseconds, at least 1,000; undefined if the text is no age. */
export function parseAge(text: string): number | undefined {
  const [, digits, unit = ''] = /^([0-9]{1,9})([a-z])$/.exec(text) ?? [];
  const milliseconds = isUnit(unit) ? Number(digits) * units[unit] : 0;
  return milliseconds > 0 ? milliseconds : undefined;
}

/** The age in the largest unit that divides it exactly. `milliseconds` are whole seconds. */
export function ageText(milliseconds: number): string {
  for (const [unit, length] of Object.entries(units)) {
    if (milliseconds % length === 0) return `${milliseconds / length}${unit}`;
  }
  return `${milliseconds / units.s}s`;
}

/** Longest lease of a workload token, in milliseconds. */
export const mostWorkload = 3_600_000;
