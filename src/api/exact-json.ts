// JSON as it came, in which no number changes silently: one that a double cannot keep becomes NaN, which no JSON holds and every
// schema refuses.

/** All that `inexact` looks at: sixteen digits in a row, or an exponent that may lead to nothing. */
const suspicious = /[0-9]{16}|[0-9][eE]-[0-9]{3}/;

const integer = /^-?[0-9]+$/;
const nothing = /^-?[0.]+(?:[eE].*)?$/;

/** Parses as `JSON.parse` does, and throws what it throws. */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!suspicious.test(text)) return value;
  try {
    return JSON.parse(text, (_key, item: unknown, context?: { source?: string }) =>
      typeof item === 'number' && isInexact(item, context?.source) ? Number.NaN : item,
    );
  } catch {
    // Only nesting that no field may have takes so much stack.
    return value;
  }
}

/** What is wrong with a number of parsed JSON as something to keep; undefined when nothing is. */
export function numberProblem(value: number): string | undefined {
  if (Number.isNaN(value)) return 'holds a number that cannot be kept exactly: send it as a string';
  return Number.isFinite(value) ? undefined : 'holds a number out of range';
}

/** The same for whatever is within `value`. */
export function numberProblemIn(value: unknown): string | undefined {
  const waiting = [value];
  while (waiting.length > 0) {
    const item = waiting.pop();
    const problem = typeof item === 'number' ? numberProblem(item) : undefined;
    if (problem !== undefined) return problem;
    if (typeof item === 'object' && item !== null) for (const each of Object.values(item)) waiting.push(each);
  }
  return undefined;
}

/**
 * Whether the text of a number says another one than `value`. An integer must be kept to its last digit; a fraction is
 * the double nearest to it, as everywhere, but not zero in place of something.
 */
function isInexact(value: number, source: string | undefined): boolean {
  if (source === undefined || !Number.isFinite(value)) return false;
  if (integer.test(source)) return !Number.isSafeInteger(value) && BigInt(source) !== digitsOf(value);
  return value === 0 && !nothing.test(source);
}

/** The integer that `value` is written as: 1e23 is 10^23, though the double is a little less. */
function digitsOf(value: number): bigint {
  const [digits = '', exponent = '0'] = String(value).split('e');
  const [whole = '', fraction = ''] = digits.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length);
}
