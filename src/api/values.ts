// The simple values of the wire: text, ids, times, free-form objects, permission flags, and boolean query parameters.

import { z } from 'zod';
import { isLongFlag, maxFlagLength, maxFlags } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import { kemNames } from '../model/kems.ts';
import { numberProblem } from './exact-json.ts';
import { sample } from './example-values.ts';

/** Maximum nesting of a free-form object, the object itself being the first level; arrays count. */
export const maxDepth = 32;

/** Maximum number of values in a free-form object, at all levels together. */
export const maxValues = 20_000;

const tooManyValues = `must have at most ${maxValues} values, at all levels together`;

const nullOrLone = 'must be well-formed Unicode without NUL characters';

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** The part of that rule that a pattern for ECMAScript, RE2 and Python alike can express. */
const storable = '^[^\\x00]*$';

/** Any text that can be stored and canonicalized: no lone surrogate, no NUL. */
export const text = z.string().refine(isStorable, nullOrLone).meta({ pattern: storable });

/** A required text: not empty. */
export const requiredText = z.string().min(1).refine(isStorable, nullOrLone).meta({ pattern: storable });

/** A secret that a person types: anything but empty. Never echoed. */
export const secretText = z
  .string()
  .min(1)
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode');

/** A path parameter. The look-up validates it: a malformed name is simply an unknown one. */
export const pathText = z.string();

/** `prefix_` and a lower-case ULID, in an answer. */
export function idOf(
  prefix:
    | 'ring'
    | 'key'
    | 'asset'
    | 'user'
    | 'sess'
    | 'fact'
    | 'acct'
    | 'apik'
    | 'act'
    | 'tenant'
    | 'proof'
    | 'rule'
    | 'appr'
    | 'glass',
) {
  return z.string().meta({ pattern: `^${prefix}_${ulid}$` });
}

const ulid = '[0-9a-hjkmnp-tv-z]{26}';

/** A managed key's id in an answer. Those made as transit rings kept theirs. */
export const managedKeyId = z.string().meta({ pattern: `^(?:mkey|ring)_${ulid}$` });

/** Caller in an answer: the id of an API key or of a User, or a word such as `local` for callers without one. */
export const callerId = z.string().meta({ pattern: `^(?:(?:apik|user)_${ulid}|[a-z-]+)$` });

/** The pattern of a ring's name, in any case; ids of rings fit it too. */
export const ringNamePattern = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';

/** The same, or empty. */
export const ringNameOrNone = '^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$';

/** Alphabet of hashes, headers, cursors and credentials of authenticators. */
export const base64urlPattern = '^[A-Za-z0-9_-]+$';

/** Alphabet of secrets, ciphertexts and signatures: one word. */
export const wordPattern = '^[!-~]+$';

/** The same for an access token, which is empty in answers to the console: its browser keeps the token in a cookie. */
export const accessTokenPattern = '^[!-~]*$';

/** Matches every IP address and CIDR block, and some other texts. */
export const addressPattern = '^[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?$';

/** Bytes in an answer. */
export const base64 = z.string().meta({ contentEncoding: 'base64', pattern: '^[A-Za-z0-9+/]+={0,2}$' });

/**
 * At least one of two texts. Not with `anyOf`, for which client generators make a class for each choice, without the
 * fields.
 */
export function eitherOf(one: string, other: string) {
  const needed = (name: string) => ({ properties: { [name]: { type: 'string' } }, required: [name] });
  return { if: needed(one), else: needed(other) };
}

/** A number of things, in an answer. */
export const count = z.int().min(0);

/** RFC 3339, UTC, milliseconds. */
export const timestamp = z
  .string()
  .meta({ description: 'RFC 3339, UTC, milliseconds', format: 'date-time', examples: [sample.time] });

/** Milliseconds since 1970, UTC. */
export const epochTime = z
  .int()
  .meta({ description: 'milliseconds since 1970-01-01T00:00:00Z', examples: [sample.epochTime] });

/** The same in an answer, where no time is before 1970. */
export const pastTime = z
  .int()
  .min(0)
  .meta({ description: 'milliseconds since 1970-01-01T00:00:00Z', examples: [sample.epochTime] });

export const algorithm = z.enum(['aes256']).meta({ description: 'what the keys are for: AES-256' });

/** Custody of a ring whose keys are wrapped to its public key. */
export const clientCustody = z
  .enum(['client'])
  .meta({ description: "who can use the ring's keys: those who hold its private key, and not the appliance" });

type FreeForm = Record<string, unknown>;

/** Why `value` is refused as a free-form object; undefined if it is valid. */
function freeFormProblem(value: FreeForm): string | undefined {
  let count = 0;

  function problemOf(part: unknown, depth: number): string | undefined {
    if (typeof part === 'string') return part.isWellFormed() ? undefined : 'must be well-formed Unicode';
    if (typeof part === 'number') return numberProblem(part);
    if (part === null || typeof part !== 'object') return undefined;
    if (depth > maxDepth) return `nests deeper than ${maxDepth} levels`;
    return Array.isArray(part) ? problemOfArray(part, depth) : problemOfObject(part, depth);
  }

  function problemOfArray(items: readonly unknown[], depth: number): string | undefined {
    count += items.length;
    if (count > maxValues) return tooManyValues;
    for (const item of items) {
      const problem = problemOf(item, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  function problemOfObject(part: object, depth: number): string | undefined {
    // Building an array of all entries would cost more than checking them.
    for (const key in part) {
      if (!Object.hasOwn(part, key)) continue;
      if (++count > maxValues) return tooManyValues;
      if (!key.isWellFormed()) return 'must be well-formed Unicode';
      const problem = problemOf(Reflect.get(part, key), depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  return problemOf(value, 1);
}

/** An object with any properties. Passed through unchanged, so that `__proto__` and the like stay ordinary keys. */
export const freeForm = z
  .custom<FreeForm>(isJsonObject, 'expected an object')
  .superRefine((value, context) => {
    const problem = freeFormProblem(value);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({
    id: 'FreeForm',
    type: 'object',
    additionalProperties: true,
    description: `any properties, at most ${maxDepth} levels deep and ${maxValues} values in all; numbers are IEEE 754 doubles: an integer that one cannot keep exactly is refused, and -0 is 0`,
  });

/** Default maximum of entries in a request's list. */
export const maxEntries = 1000;

/** Maximum of problems reported for one list. */
const mostProblems = 20;

/**
 * A list of non-empty texts in a request. Its length is checked first, so that an oversized list costs nothing; zod's
 * own array checks every element first.
 */
export function textList(most: number = maxEntries, pattern: string = storable) {
  return z
    .custom<string[]>()
    .superRefine((value: unknown, context) => {
      const refuse = (message: string, path: PropertyKey[] = []) => context.addIssue({ code: 'custom', message, path });
      if (!Array.isArray(value)) return refuse(`expected an array, got ${kindOf(value)}`);
      if (value.length > most) return refuse(`must have at most ${most} entries`);
      let problems = 0;
      for (const [index, item] of value.entries()) {
        const problem = listedTextProblem(item);
        if (problem === undefined) continue;
        refuse(problem, [index]);
        if (++problems === mostProblems) return;
      }
    })
    .meta({ type: 'array', maxItems: most, items: { type: 'string', minLength: 1, pattern } });
}

/** A list of items that `problemOf` accepts; it stops at the first problem. Its length is checked first. */
export function thingList<T>(most: number, problemOf: (item: unknown) => string | undefined) {
  return z.custom<T[]>().superRefine((value: unknown, context) => {
    const refuse = (message: string, path: PropertyKey[] = []) => context.addIssue({ code: 'custom', message, path });
    if (!Array.isArray(value)) return refuse(`expected an array, got ${kindOf(value)}`);
    if (value.length > most) return refuse(`must have at most ${most} entries`);
    for (const [index, item] of value.entries()) {
      const problem = problemOf(item);
      if (problem !== undefined) return refuse(problem, [index]);
    }
  });
}

function listedTextProblem(item: unknown): string | undefined {
  if (typeof item !== 'string') return `expected a string, got ${kindOf(item)}`;
  if (item === '') return 'must not be empty';
  return isStorable(item) ? undefined : nullOrLone;
}

/** Kind of a JSON value, in words. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : withArticle(typeof value);
}

export function withArticle(type: string): string {
  return /^[aeio]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** A boolean query parameter. */
export const trueParam = z
  .string()
  .refine((value) => ['true', 'false'].includes(value), "must be 'true' or 'false'")
  .meta({ enum: ['true', 'false'] });

function flagsProblem(value: unknown): string | undefined {
  if (!isJsonObject(value)) return 'expected an object of flag names to booleans';
  const entries = Object.entries(value);
  if (entries.length > maxFlags) return `expected at most ${maxFlags} names`;
  for (const [name, granted] of entries) {
    if (name.length === 0 || isLongFlag(name)) return `a flag name has 1 to ${maxFlagLength} characters`;
    if (!name.isWellFormed()) return 'must be well-formed Unicode';
    if (typeof granted !== 'boolean') return 'every flag must be true or false';
  }
  return undefined;
}

/** Passed through unchanged: names are ordinary keys, whatever they are. */
export const flags = z
  .custom<Record<string, boolean>>()
  .superRefine((value, context) => {
    const problem = flagsProblem(value);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({
    id: 'NewFlags',
    description: `permission flags: at most ${maxFlags} names of 1 to ${maxFlagLength} characters, compared in lower case; only \`true\` grants`,
    type: 'object',
    additionalProperties: { type: 'boolean' },
    propertyNames: { minLength: 1, maxLength: maxFlagLength },
    maxProperties: maxFlags,
    examples: [{ 'keyring.payroll.encrypt': true }],
  });

/** Flags in answers, as they were given. */
export const shownFlags = z.custom<FreeForm>(isJsonObject, 'expected an object').meta({
  id: 'Flags',
  description: 'permission flags, as they were given; only `true` grants',
  type: 'object',
  additionalProperties: { type: 'boolean' },
  examples: [{ 'keyring.payroll.encrypt': true }],
});

/** KEM by which a ring's keys are wrapped to it. */
export const kem = z.enum(kemNames).meta({
  description:
    'how keys are wrapped: `x25519`, or `mlkem768-x25519` (X-Wing), which a quantum computer does not break either',
  examples: ['x25519'],
});

/** A body that refuses unknown fields and lists the known ones, so that a mistyped option is not silently ignored. */
export function only<const S extends z.core.$ZodLooseShape>(shape: S) {
  const unknown = `is not known here; expected ${Object.keys(shape).join(', ')}`;
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? unknown : undefined) });
}
