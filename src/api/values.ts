// The simple values of the wire: text, ids, times, free-form objects, and the query parameters that are switches.
import { z } from 'zod';
import { numberProblem } from './exact-json.ts';
import { sample } from './example-values.ts';

/** Levels that a free-form object may nest, the object itself being the first; arrays count. */
export const maxDepth = 32;

export const nullOrLone = 'must be well-formed Unicode without NUL characters';

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Any text that can be stored and canonicalised: no lone surrogate, no NUL. */
export const text = z.string().refine(isStorable, nullOrLone);

/** A required text: not empty. */
export const requiredText = z.string().min(1).refine(isStorable, nullOrLone);

/** A secret that a person types: anything but nothing. Never echoed. */
export const secretText = z
  .string()
  .min(1)
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode');

/** A path parameter. What it means is decided by the look-up, so that a senseless one is an unknown one. */
export const pathText = z.string();

/** `prefix_` and a lower-case ULID. */
export const id = z.string();

/** RFC 3339, UTC, milliseconds. */
export const timestamp = z
  .string()
  .meta({ description: 'RFC 3339, UTC, milliseconds', format: 'date-time', examples: [sample.time] });

/** Milliseconds since 1970, UTC. */
export const epochTime = z
  .int()
  .meta({ description: 'milliseconds since 1970-01-01T00:00:00Z', examples: [sample.epochTime] });

export const algorithm = z.enum(['aes256']).meta({ description: 'what the keys are for: AES-256' });

export type FreeForm = Record<string, unknown>;

/** What is wrong with `value` as (a part of) a free-form object, `depth` levels deep; undefined when nothing is. */
function freeFormProblem(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : 'must be well-formed Unicode';
  if (typeof value === 'number') return numberProblem(value);
  if (value === null || typeof value !== 'object') return undefined;
  if (depth > maxDepth) return `nests deeper than ${maxDepth} levels`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = freeFormProblem(item, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  for (const [key, item] of Object.entries(value)) {
    if (!key.isWellFormed()) return 'must be well-formed Unicode';
    const problem = freeFormProblem(item, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

export function isPlainObject(value: unknown): value is FreeForm {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object with any properties. It passes through untouched, so that `__proto__` and the like stay ordinary keys. */
export const freeForm = z
  .custom<FreeForm>(isPlainObject, 'expected an object')
  .superRefine((value, context) => {
    const problem = freeFormProblem(value, 1);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({
    id: 'FreeForm',
    type: 'object',
    additionalProperties: true,
    description: `any properties, at most ${maxDepth} levels deep; numbers are IEEE 754 doubles: an integer that one cannot keep exactly is refused, and -0 is 0`,
  });

/** A query parameter that switches something on when it is `true`. */
export const trueParam = z.string().meta({ enum: ['true', 'false'] });
