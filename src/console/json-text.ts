// Free-form objects as people type and read them.
import { numberProblemIn, parseExactly } from '../api/exact-json.ts';

export type Parsed =
  | { readonly value: Record<string, unknown>; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: string };

/** Nothing typed is an empty object. */
export function parseObject(text: string): Parsed {
  if (text.trim() === '') return { value: {} };
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { problem: 'This has to be an object: {"name": "value"}.' };
  }
  const problem = numberProblemIn(value);
  return problem === undefined
    ? { value: value as Record<string, unknown> }
    : { problem: `Something in it ${problem}.` };
}

export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}
