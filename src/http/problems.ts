// What is wrong with input, field by field, in words that never repeat a value.
import type { z } from 'zod';
import { KmsError } from '../errors.ts';

type Issue = z.core.$ZodIssue;

/** The error for input that a schema refuses. `whole` names the input where the problem is not in a field of it. */
export function invalidInput(issues: readonly Issue[], input: unknown, whole: string): KmsError {
  const fields = new Map<string, string>();
  for (const issue of issues) {
    const field = issue.path.length === 0 ? whole : issue.path.join('.');
    if (!fields.has(field)) fields.set(field, problemOf(issue, valueAt(input, issue.path)));
  }
  const [first] = fields;
  const message = first ? `${first[0]}: ${first[1]}` : `${whole}: not valid`;
  return new KmsError('invalid', message, { fields: Object.fromEntries(fields) });
}

function problemOf(issue: Issue, value: unknown): string {
  if (value === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'int' || (issue.expected === 'number' && typeof value === 'number')
        ? 'must be an integer'
        : `expected ${article(issue.expected)}, got ${kindOf(value)}`;
    case 'invalid_value':
      return `must be ${issue.values.map((each) => `'${String(each)}'`).join(' or ')}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

function article(type: string): string {
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : article(typeof value);
}

/** What the input holds at a path, own properties only. */
function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
