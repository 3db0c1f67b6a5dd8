// Words for problems of input that a schema refuses, for requests and configuration files alike. They never repeat a
// value.
import type { z } from 'zod';
import { kindOf, withArticle } from './values.ts';

type Issue = z.core.$ZodIssue;

/** The problem of the value that the issue is about. */
export function problemOf(issue: Issue, value: unknown): string {
  if (value === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'int' || (issue.expected === 'number' && typeof value === 'number')
        ? 'must be an integer'
        : `expected ${withArticle(issue.expected)}, got ${kindOf(value)}`;
    case 'invalid_value':
      return `must be ${issue.values.map((each) => `'${String(each)}'`).join(' or ')}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return issue.maximum === Number.MAX_SAFE_INTEGER
        ? `must be an integer of at most ${issue.maximum}: a larger one cannot be kept exactly`
        : `must be at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

/** The value at a path of the input, own properties only. */
export function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
