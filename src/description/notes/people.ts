// Notes on Users, invites, logins, sessions and passwords.

import { sample } from '../../api/example-values.ts';
import type { loginEndpoints } from '../../api/logins.ts';
import type { userEndpoints } from '../../api/users.ts';
import type { Note } from '../prose.ts';

const noUser = { message: 'there is no such user' };
const cannotGrant = { message: 'the permission flag keyring.payroll.encrypt is missing, so it cannot be granted' };
const stronger = { message: 'the permission flag keyring.payroll.encrypt is missing, which the target has' };
const lastHolder = {
  message:
    'no active API key without an end or a limit to addresses and no user who can log in would hold * any more: give it to another first, or use kms on the appliance itself',
};
const taken = [
  { field: 'username', message: 'is taken' },
  { field: 'email', message: 'is taken' },
  { field: 'email', message: 'expected an e-mail address' },
];
const userLimit = '25 users';
const notASession = { message: 'expected an access token, not an API key' };
const username = { username: { description: 'the user name, in any case', example: 'ada' } };

export const userNotes: Readonly<Record<(typeof userEndpoints)[number]['id'], Note>> = {
  listUsers: { description: ['Lists the Users, those too who have not completed their invite.'] },
  createUser: {
    description: [
      'Makes a User with a generated password, which is told this once. To let the person choose one, invite instead.',
    ],
    problems: { 400: taken, 403: [cannotGrant] },
    limits: [userLimit],
  },
  getUser: {
    description: ['Answers one User.'],
    params: { username: { description: 'the user name; with `email=true` the e-mail address', example: 'ada' } },
    problems: { 404: [noUser] },
  },
  updateUser: {
    description: [
      'Each field that is named is replaced whole, `props` and `flags` too; the others stay. Naming `flags` takes the flag `user.update`, for oneself too.',
    ],
    params: username,
    problems: {
      400: [
        { field: 'email', message: 'is taken' },
        { field: 'email', message: 'expected an e-mail address' },
        lastHolder,
      ],
      403: [cannotGrant, stronger],
      404: [noUser],
    },
  },
  deleteUser: {
    description: [
      'Deletes a User, ends its sessions and disables the API keys that it owns, none of which may be stronger than the caller. Those that others still use can be handed to another User before.',
    ],
    params: { username: { description: 'the user name; with `id=true` the id of the User', example: 'ada' } },
    answer: { message: 'the user ada is deleted' },
    problems: { 400: [lastHolder], 403: [stronger], 404: [noUser] },
  },
  inviteUser: {
    description: [
      'Makes a User and answers the link by which the person chooses a password; where SMTP is set up, the link goes out by mail too. Inviting a User again who has not completed the invite replaces the link.',
    ],
    problems: { 400: taken, 403: [cannotGrant, stronger] },
    limits: [userLimit],
  },
};

export const loginNotes: Readonly<Record<(typeof loginEndpoints)[number]['id'], Note>> = {
  validateInvite: {
    description: ['Says whether the token of an invite works, and for whom, before a password is chosen.'],
    errorExamples: { 401: { state: 'invalid' } },
  },
  completeInvite: {
    description: [
      'Sets the password and logs the User in. The token works once.',
      'A password that breaks a rule gets 400 with `state` `malformed-password` and the counts; the token stays good.',
    ],
    errorExamples: { 401: { state: 'expired' } },
  },
  completeSetUp: {
    description: [
      'Makes the first User with the token of the set-up link that `kms serve` shows when it makes an appliance, and logs them in. Where there is no User, `kms user set-up-link` makes another. The link works until any User is made, once at most, and no longer than an invite.',
      'A password that breaks a rule gets 400 with `state` `malformed-password` and the counts; the token stays good.',
    ],
    errorExamples: { 401: { state: 'expired' } },
  },
  login: {
    description: [
      'Answers an access token. A wrong user name and a wrong password get the same answer after the same time; too many failures make the next try wait.',
    ],
    problems: {
      400: [{ message: 'wrong user name or password' }],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  refreshSession: {
    description: [
      'Answers a new access token; the old one ends at once. A session ends 12 hours after its login at the latest, however often it was refreshed.',
    ],
    problems: { 400: [notASession] },
  },
  logout: {
    description: ['Ends the access token with which it is called. No body is needed.'],
    problems: { 400: [notASession] },
  },
  changePassword: {
    description: [
      'Sets the password of the User whose access token it is. All other sessions of the User end, and so does a reset link that is out; the session that asks goes on.',
      'The current password is checked as at login: after too many failures, of logins too, the next try has to wait. A new password that breaks a rule gets 400 with `state` `malformed-password` and the counts.',
    ],
    problems: {
      400: [{ message: 'the current password is wrong' }, notASession],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  listSessions: {
    description: [
      'Answers the open sessions of the User whose access token it is, so that one who sees a strange one can end it. A session is a login with all its refreshes.',
    ],
    problems: { 400: [notASession] },
  },
  endSession: {
    description: ['Ends one session of the User whose access token it is: its access token works no longer.'],
    params: { id: { description: 'id of the session', example: sample.sessionId } },
    problems: { 400: [notASession], 404: [{ message: 'there is no such session' }] },
  },
  endOtherSessions: {
    description: ['Ends every session of the User but the one whose access token it is.'],
    problems: { 400: [notASession] },
  },
  startPasswordReset: {
    description: [
      'Where there is a User of this address and SMTP is set up, a link goes out that works once, for 1 hour. The answer is the same for every address. Where SMTP is not set up it says so, and who can help: `no mail goes out from here: ask an administrator, who makes a link with kms user reset-link` (with the command in backquotes).',
    ],
    answer: { message: 'if there is such a user, a link to reset the password is on its way' },
  },
  completePasswordReset: {
    description: [
      'Sets a new password and ends every session of the User. Whatever is wrong, with the token, the password or the body, the answer is 400 and `{}`.',
    ],
    body: { token: sample.resetToken, password: sample.password },
  },
};
