// Passwords: what a validation says, count by count.
import { z } from 'zod';

export const passwordValidation = z.object({
  isValid: z.boolean(),
  details: z.object({
    minLength: z.int(),
    newPasswordLength: z.int(),
    minUppercase: z.int(),
    newPasswordUppercase: z.int(),
    minLowercase: z.int(),
    newPasswordLowercase: z.int(),
    minSpecialChar: z.int(),
    newPasswordSpecialChar: z.int(),
    minNumber: z.int(),
    newPasswordNumber: z.int(),
  }),
});
export type PasswordValidation = z.output<typeof passwordValidation>;
