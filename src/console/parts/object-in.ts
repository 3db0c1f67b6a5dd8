// The object that was typed into a `JsonField` of a form.
import { FieldProblems } from '../error-text.ts';
import { parseObject } from '../text.ts';
import type { FormValues } from './form.tsx';

/** Throws `FieldProblems`. */
export function objectIn(values: FormValues, name: string): Record<string, unknown> {
  const { value, problem } = parseObject(values.exactly(name));
  if (problem !== undefined) throw new FieldProblems({ [name]: problem });
  return value;
}
