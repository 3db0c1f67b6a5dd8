// Sessions, invites and password resets: how a person gets in.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { passwordValidation } from './password.ts';
import { createUserBody, user } from './user.ts';
import { requiredText, secretText } from './values.ts';

const accessToken = z.string().meta({
  description: 'stands in place of an API key in `Authorization: Bearer`, with the flags of the User',
  examples: [sample.accessToken],
});
const newPassword = secretText.meta({
  description:
    'at least 8 characters, with a lower-case and an upper-case letter, a digit and a special character; at most 1,024 bytes of UTF-8',
  examples: [sample.password],
});

export const loginBody = z.object({
  username: requiredText.meta({
    description: 'the user name, or with `email=true` the e-mail address, in any case',
    examples: ['ada'],
  }),
  password: secretText.meta({ description: 'the password', examples: [sample.password] }),
});
export const loginAnswer = z.object({ user, accessToken }).meta({ id: 'Session', description: 'a session of a User' });

export const inviteValid = z.object({
  state: z.enum(['success']).meta({ description: 'the invite can be completed' }),
  user,
});
export const inviteRefused = z
  .object({
    state: z.enum(['expired', 'invalid']).meta({
      description: '`expired`: past its time; `invalid`: used, replaced or never given out',
      examples: ['expired'],
    }),
  })
  .meta({ id: 'InviteRefused', description: 'why an invite cannot be completed' });

export const tokenAndPassword = z.object({
  token: secretText.meta({ description: 'the token in the link', examples: [sample.inviteToken] }),
  password: newPassword,
});
/** `accesstoken` in lower case is what the interface says here, unlike login. */
export const inviteCompleted = z.object({ user, accesstoken: accessToken });
export const malformedPassword = z
  .object({
    state: z.enum(['malformed-password']).meta({ description: 'the password breaks a rule' }),
    results: passwordValidation,
  })
  .meta({ id: 'MalformedPassword', description: 'a password that was refused' });

export const setUpBody = createUserBody.pick({ username: true, email: true, firstName: true, lastName: true }).extend({
  token: secretText.meta({
    description: 'the token in the link',
    examples: ['kmssu_1767323045678_q0K2yV7n3mB8tXw5Zr1LsDfGhJcQpEaUiOvNkMxTbYg'],
  }),
  password: newPassword,
});

export const resetStartBody = z.object({
  email: requiredText.meta({ description: "the User's e-mail address, in any case", examples: ['ada@example.org'] }),
});
