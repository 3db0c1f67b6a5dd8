// Passwords: what a validation says, count by count.
import { z } from 'zod';

/** A count that a password must reach, and the one that it has. */
const least = (of: string, count: number) =>
  z.int().meta({ description: `how many ${of} it takes`, examples: [count] });
const has = (of: string, count: number) => z.int().meta({ description: `how many ${of} there are`, examples: [count] });

export const passwordValidation = z
  .object({
    isValid: z.boolean().meta({ description: 'every count is reached', examples: [false] }),
    details: z
      .object({
        minLength: least('characters', 8),
        newPasswordLength: has('characters', 6),
        minUppercase: least('upper-case letters', 1),
        newPasswordUppercase: has('upper-case letters', 1),
        minLowercase: least('lower-case letters', 1),
        newPasswordLowercase: has('lower-case letters', 5),
        minSpecialChar: least('characters that are neither letter nor digit', 1),
        newPasswordSpecialChar: has('characters that are neither letter nor digit', 0),
        minNumber: least('digits', 1),
        newPasswordNumber: has('digits', 0),
      })
      .meta({ description: 'what is asked and what there is, count by count' }),
  })
  .meta({ id: 'PasswordValidation', description: 'a password against the rules' });
export type PasswordValidation = z.output<typeof passwordValidation>;
