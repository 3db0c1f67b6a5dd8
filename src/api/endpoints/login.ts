// Sessions, invites and password resets: what people do to get in and out.
import { z } from 'zod';
import { endpoint } from '../endpoint.ts';
import { emptyBody, errorBody, messageBody } from '../error.ts';
import { sample } from '../example-values.ts';
import {
  inviteCompleted,
  inviteRefused,
  inviteValid,
  loginAnswer,
  loginBody,
  malformedPassword,
  resetStartBody,
  setUpBody,
  tokenAndPassword,
} from '../login.ts';
import { trueParam } from '../values.ts';

const tag = 'Login';
const refused = { description: 'the token is expired or invalid', schema: inviteRefused };
const wait = { 429: { description: 'too many failed tries; `Retry-After` says how long to wait', schema: errorBody } };

export const loginEndpoints = [
  endpoint({
    id: 'validateInvite',
    method: 'GET',
    path: '/auth/user/invite-validate',
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
  endpoint({
    id: 'completeInvite',
    method: 'POST',
    path: '/auth/user/invite-complete',
    tag,
    summary: 'Complete an invite with a password',
    access: { kind: 'public' },
    body: tokenAndPassword,
    answer: inviteCompleted,
    errors: {
      400: { description: 'the password does not meet the rules', schema: malformedPassword },
      401: refused,
    },
  }),
  endpoint({
    id: 'completeSetUp',
    method: 'POST',
    path: '/auth/user/set-up-complete',
    tag,
    summary: 'Make the first User, who may do everything',
    access: { kind: 'public' },
    body: setUpBody,
    answer: inviteCompleted,
    errors: {
      400: { description: 'the password does not meet the rules', schema: malformedPassword },
      401: refused,
    },
  }),
  endpoint({
    id: 'login',
    method: 'POST',
    path: '/auth/basic/login',
    tag,
    summary: 'Log in with a password',
    access: { kind: 'public' },
    query: z.object({
      email: trueParam.exactOptional().meta({ description: '`true`: username is an e-mail address' }),
    }),
    body: loginBody,
    answer: loginAnswer,
    errors: wait,
  }),
  endpoint({
    id: 'refreshSession',
    method: 'GET',
    path: '/auth/basic/refresh',
    changes: true,
    tag,
    summary: 'Exchange an access token for a new one',
    access: { kind: 'credential', action: 'session.refresh' },
    answer: loginAnswer,
  }),
  endpoint({
    id: 'logout',
    method: 'POST',
    path: '/auth/basic/logout',
    tag,
    summary: 'End the session of the access token',
    access: { kind: 'credential', action: 'session.end' },
    answer: emptyBody,
  }),
  endpoint({
    id: 'startPasswordReset',
    method: 'POST',
    path: '/auth/basic/reset-password-start',
    tag,
    summary: 'Ask for a reset link; the answer is the same whether or not there is such a User',
    access: { kind: 'public' },
    body: resetStartBody,
    answer: messageBody,
  }),
  endpoint({
    id: 'completePasswordReset',
    method: 'POST',
    path: '/auth/basic/reset-password-complete',
    tag,
    summary: 'Set a new password with a reset token',
    access: { kind: 'public' },
    body: tokenAndPassword,
    answer: emptyBody,
    silent400: true,
  }),
] as const;
