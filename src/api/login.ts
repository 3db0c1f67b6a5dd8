// Sessions, invites and password resets: how a person gets in.
import { z } from 'zod';
import { passwordValidation } from './password.ts';
import { user } from './user.ts';
import { requiredText, secretText } from './values.ts';

export const loginBody = z.object({ username: requiredText, password: secretText });
export const loginAnswer = z.object({ user, accessToken: z.string() });

export const inviteValid = z.object({ state: z.enum(['success']), user });
export const inviteRefused = z.object({ state: z.enum(['expired', 'invalid']) });

export const tokenAndPassword = z.object({ token: secretText, password: secretText });
/** `accesstoken` in lower case is what the interface says here, unlike login. */
export const inviteCompleted = z.object({ user, accesstoken: z.string() });
export const malformedPassword = z.object({ state: z.enum(['malformed-password']), results: passwordValidation });

export const resetStartBody = z.object({ email: requiredText });
