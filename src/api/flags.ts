// Permission flags on the wire: a flat object of flag name to boolean.
import { z } from 'zod';
import { isLongFlag, maxFlagLength, maxFlags } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import type { FreeForm } from './values.ts';

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

/** Passes through untouched: names are ordinary keys, whatever they are. */
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
