// Permission flags on the wire: a flat object of flag name to boolean.
import { z } from 'zod';
import { type FreeForm, isPlainObject } from './values.ts';

export const maxFlagLength = 256;

function flagsProblem(value: unknown): string | undefined {
  if (!isPlainObject(value)) return 'expected an object of flag names to booleans';
  for (const [name, granted] of Object.entries(value)) {
    if (name.length === 0 || name.length > maxFlagLength) return `a flag name has 1 to ${maxFlagLength} characters`;
    if (!name.isWellFormed()) return 'must be well-formed Unicode';
    if (typeof granted !== 'boolean') return 'every flag must be true or false';
  }
  return undefined;
}

/** Passes through untouched: names are ordinary keys, whatever they are. */
export const flags = z
  .custom<Record<string, boolean>>()
  .superRefine((value, context) => {
    const problem = flagsProblem(value);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  })
  .meta({
    id: 'NewFlags',
    description: `permission flags: names of 1 to ${maxFlagLength} characters, compared in lower case; only \`true\` grants`,
    type: 'object',
    additionalProperties: { type: 'boolean' },
    propertyNames: { minLength: 1, maxLength: maxFlagLength },
    examples: [{ 'keyring.payroll.encrypt': true }],
  });

/** Flags in answers, as they were given. */
export const shownFlags = z.custom<FreeForm>(isPlainObject, 'expected an object').meta({
  id: 'Flags',
  description: 'permission flags, as they were given; only `true` grants',
  type: 'object',
  additionalProperties: { type: 'boolean' },
  examples: [{ 'keyring.payroll.encrypt': true }],
});
