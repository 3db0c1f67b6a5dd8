// Logins on the wire: invites, sessions, passwords and set-up; most of the endpoints need no credential.
import { z } from 'zod';
import { emptyBody, endpoint, messageBody, missing, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import { requestOptions, usedPasskey } from './passkeys.ts';
import { ownSecondFactors } from './second-factors.ts';
import { createUserBody, user } from './users.ts';
import {
  accessTokenPattern,
  count,
  idOf,
  pastTime,
  pathText,
  requiredText,
  secretText,
  timestamp,
  trueParam,
} from './values.ts';

/** A count that a password must reach, and its actual count. */
const least = (of: string, number: number) =>
  count.meta({ description: `how many ${of} it takes`, examples: [number] });
const has = (of: string, number: number) => count.meta({ description: `how many ${of} there are`, examples: [number] });

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

const accessToken = z.string().meta({
  pattern: accessTokenPattern,
  description: 'stands in place of an API key in `Authorization: Bearer`, with the flags of the User',
  examples: [sample.accessToken],
});
const newPassword = secretText.meta({
  minLength: 8,
  maxLength: 1024,
  description:
    'at least 8 characters, with a lower-case and an upper-case letter, a digit and a special character; at most 1,024 bytes of UTF-8',
  examples: [sample.password],
});

const loginBody = z.object({
  username: requiredText.meta({
    description: 'the user name, or with `email=true` the e-mail address, in any case',
    examples: ['ada'],
  }),
  password: secretText.meta({ description: 'the password', examples: [sample.password] }),
  code: secretText.exactOptional().meta({
    description: 'where the User has a second factor: a code of an app, or a recovery code',
    examples: [sample.totpCode],
  }),
  passkey: usedPasskey.exactOptional().meta({
    description: 'in its place: what the browser answered to `passkeyOptions`',
  }),
});
const secondFactorNeeded = z
  .object({
    message: z.string().meta({ description: 'what is missing or wrong', examples: ['a second factor is needed'] }),
    secondFactor: z
      .array(z.enum(['totp', 'passkey', 'recovery-code']))
      .meta({ description: 'what the User can bring', examples: [['totp', 'passkey', 'recovery-code']] }),
    passkeyOptions: requestOptions.exactOptional().meta({ description: 'for the browser, where it can be a passkey' }),
  })
  .meta({ id: 'SecondFactorNeeded', description: 'the password is right; more is needed' });
export const loginAnswer = z.object({ user, accessToken }).meta({ id: 'Session', description: 'a session of a User' });

const inviteValid = z.object({
  state: z.enum(['success']).meta({ description: 'the invite can be completed' }),
  user,
});
const inviteRefused = z
  .object({
    state: z.enum(['expired', 'invalid']).meta({
      description: '`expired`: past its time; `invalid`: used, replaced or never given out',
      examples: ['expired'],
    }),
  })
  .meta({ id: 'InviteRefused', description: 'why an invite cannot be completed' });

const tokenAndPassword = z.object({
  token: secretText.meta({ description: 'the token in the link', examples: [sample.inviteToken] }),
  password: newPassword,
});
/** `accesstoken` in lower case is the interface's spelling here, unlike at login. */
const inviteCompleted = z.object({ user, accesstoken: accessToken });
const malformedPassword = z
  .object({
    state: z.enum(['malformed-password']).meta({ description: 'the password breaks a rule' }),
    results: passwordValidation,
  })
  .meta({ id: 'MalformedPassword', description: 'a password that was refused' });
const refusedPassword = malformedPassword
  .extend({
    message: z.string().meta({ description: 'what is wrong', examples: ['the password does not meet the rules'] }),
  })
  .meta({ id: 'RefusedPassword', description: 'a new password that was refused' });

const setUpBody = createUserBody.pick({ username: true, email: true, firstName: true, lastName: true }).extend({
  token: secretText.meta({
    description: 'the token in the link',
    examples: ['kmssu_1767323045678_q0K2yV7n3mB8tXw5Zr1LsDfGhJcQpEaUiOvNkMxTbYg'],
  }),
  password: newPassword,
});

const resetStartBody = z.object({
  email: requiredText.meta({ description: "the User's e-mail address, in any case", examples: ['ada@example.org'] }),
});

const changePasswordBody = z.object({
  currentPassword: secretText.meta({ description: 'the password so far', examples: [sample.password] }),
  newPassword,
});

const session = z
  .object({
    id: idOf('sess').meta({ description: 'id of the session; refreshes keep it', examples: [sample.sessionId] }),
    createdAt: timestamp.meta({ description: 'when the login was: RFC 3339, UTC, milliseconds' }),
    lastUsedAt: pastTime.meta({ description: 'when it was last used, to a minute: milliseconds since 1970, UTC' }),
    address: z
      .string()
      .nullable()
      .meta({
        description:
          'where it was used from then: an IPv4 address or the /64 of an IPv6 address; null where that is the machine of the service itself, or was not noted',
        examples: ['192.0.2.7'],
      }),
    current: z.boolean().meta({ description: 'the one that asks', examples: [true] }),
  })
  .meta({ id: 'OwnSession', description: 'a session, as its User sees it' });

const tag = 'Login';
const refused = { description: 'the token is expired or invalid', schema: inviteRefused };

export const loginEndpoints = [
  endpoint('validateInvite', {
    tag,
    summary: 'Tell whether an invite can be completed',
    access: { kind: 'public' },
    query: z.object({
      token: z
        .string()
        .exactOptional()
        .meta({ description: 'the token in the link of the invite', examples: [sample.inviteToken] }),
    }),
    answer: inviteValid,
    errors: { 401: refused },
  }),
  endpoint('completeInvite', {
    tag,
    summary: 'Complete an invite with a password',
    access: { kind: 'public', recorded: 'user.invited' },
    body: tokenAndPassword,
    answer: inviteCompleted,
    errors: {
      400: { description: 'the password does not meet the rules', schema: malformedPassword },
      401: refused,
    },
  }),
  endpoint('completeSetUp', {
    tag,
    summary: 'Make the first User, who may do everything',
    access: { kind: 'public', recorded: 'user.create' },
    body: setUpBody,
    answer: inviteCompleted,
    errors: {
      400: { description: 'the password does not meet the rules', schema: refusedPassword },
      401: refused,
    },
  }),
  endpoint('login', {
    tag,
    summary: 'Log in with a password',
    access: { kind: 'public', backoff: true, recorded: 'session.create' },
    query: z.object({
      email: trueParam.exactOptional().meta({ description: '`true`: username is an e-mail address' }),
    }),
    body: loginBody,
    answer: loginAnswer,
    errors: {
      400: { description: 'a second factor is needed, or was wrong', schema: secondFactorNeeded },
      ...tooManyTries,
    },
  }),
  endpoint('passkeyLoginOptions', {
    changes: false,
    tag,
    summary: 'Get what the browser needs to log in with a passkey alone',
    access: { kind: 'public' },
    answer: requestOptions,
  }),
  endpoint('loginWithPasskey', {
    tag,
    summary: 'Log in with a passkey alone',
    access: { kind: 'public', backoff: true, recorded: 'session.create' },
    body: z.object({ credential: usedPasskey }),
    answer: loginAnswer,
    errors: tooManyTries,
  }),
  endpoint('refreshSession', {
    changes: true,
    tag,
    summary: 'Exchange an access token for a new one',
    access: { kind: 'credential', action: 'session.refresh' },
    byPages: true,
    answer: loginAnswer,
  }),
  endpoint('logout', {
    tag,
    summary: 'End the session of the access token',
    access: { kind: 'credential', action: 'session.end' },
    answer: emptyBody,
  }),
  endpoint('changePassword', {
    tag,
    summary: 'Change the own password; all other sessions end',
    access: { kind: 'credential', action: 'user.password', backoff: true },
    body: changePasswordBody,
    answer: emptyBody,
    errors: {
      400: { description: 'the new password does not meet the rules', schema: refusedPassword },
      ...tooManyTries,
    },
  }),
  endpoint('listSessions', {
    tag,
    summary: 'List the own open sessions, oldest login first',
    access: { kind: 'credential', action: 'session.read' },
    query: z.object({
      secondFactors: trueParam.exactOptional().meta({ description: '`true`: with the own second factors' }),
    }),
    answer: z.object({
      sessions: z.array(session).meta({ description: 'those that have neither ended nor expired; 1,000 at most' }),
      secondFactors: ownSecondFactors.exactOptional().meta({ description: 'if they were asked for' }),
    }),
  }),
  endpoint('endSession', {
    tag,
    summary: 'End one of the own sessions',
    access: { kind: 'credential', action: 'session.end' },
    params: z.object({ id: pathText }),
    answer: emptyBody,
    errors: missing('no such session of this User'),
  }),
  endpoint('endOtherSessions', {
    tag,
    summary: 'End all own sessions but the one that asks',
    access: { kind: 'credential', action: 'session.end' },
    answer: emptyBody,
  }),
  endpoint('startPasswordReset', {
    tag,
    summary: 'Ask for a reset link; the answer is the same whether or not there is such a User',
    access: { kind: 'public' },
    body: resetStartBody,
    answer: messageBody,
  }),
  endpoint('completePasswordReset', {
    tag,
    summary: 'Set a new password with a reset token',
    access: { kind: 'public', recorded: 'user.reset' },
    body: tokenAndPassword,
    answer: emptyBody,
    silent400: true,
  }),
] as const;
