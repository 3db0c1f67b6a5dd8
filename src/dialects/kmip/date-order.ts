// Order of an object's dates (specification 1.4 §3.24 to §3.27): nothing is before the Activation Date, and nothing
// after the Deactivation Date.
import { type AttributeSet, timeIn } from './attributes.ts';
import { Refusal, reasons } from './reasons.ts';

const between = ['Process Start Date', 'Protect Stop Date'] as const;
const pairs: readonly (readonly [first: string, last: string])[] = [
  ['Activation Date', 'Deactivation Date'],
  ...between.map((name) => ['Activation Date', name] as const),
  ...between.map((name) => [name, 'Deactivation Date'] as const),
];

/**
 * Throws `Refusal` for one of the dates named that stands on the wrong side of another. Other dates are left alone: an
 * operation such as Activate or Revoke may have put them there.
 */
export function checkDateOrder(set: AttributeSet, given: readonly string[]): void {
  for (const pair of pairs) {
    if (!pair.some((name) => given.includes(name))) continue;
    const [first, last] = pair.map((name) => timeIn(set, name));
    // Dates have whole seconds.
    if (first === undefined || last === undefined || Math.floor(first / 1000) <= Math.floor(last / 1000)) continue;
    throw new Refusal(reasons.invalidField, `the ${pair[0]} would be after the ${pair[1]}`);
  }
}
