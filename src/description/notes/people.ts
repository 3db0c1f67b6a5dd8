// Notes on the endpoints for Users, invites, logins, sessions, passwords and second factors.

import { sample } from '../../api/example-values.ts';
import type { loginEndpoints } from '../../api/logins.ts';
import type { oidcEndpoints } from '../../api/oidc.ts';
import type { secondFactorEndpoints } from '../../api/second-factors.ts';
import type { userEndpoints } from '../../api/users.ts';
import type { Note } from '../prose.ts';

const noUser = { message: 'there is no such user' };
const cannotGrant = { message: 'the permission flag keyring.payroll.encrypt is missing, so it cannot be granted' };
const stronger = { message: 'the target has the permission flag keyring.payroll.encrypt, which the caller lacks' };
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
const noPasskeysHere = 'passkeys need a page at a host name, not at an address of numbers';
const unproven = { message: 'the current password or the code is wrong' };
const unsaid = { field: 'currentPassword', message: 'is required, or a code in its place' };
const tooMany = { message: 'there are 20 second factors already: remove one first' };
const failures = [{ message: 'too many failed logins; try again in 4 s' }];
const username = { username: { description: 'the user name, in any case', example: 'ada' } };

export const userNotes: Readonly<Record<(typeof userEndpoints)[number]['id'], Note>> = {
  listUsers: { description: ['Lists the Users, including those who have not completed their invite.'] },
  createUser: {
    description: [
      'Creates a User with a generated password, which is shown only once. To let the person choose one, invite them instead.',
    ],
    problems: { 400: taken, 403: [cannotGrant] },
    limits: [userLimit],
  },
  getUser: {
    description: [
      'Returns one User. With `apikeys=true`, the API keys that the User owns come along for callers with `apikey.read`. Both are recorded as one `user.read`.',
    ],
    params: { username: { description: 'the user name, or the e-mail address with `email=true`', example: 'ada' } },
    problems: { 404: [noUser] },
  },
  updateUser: {
    description: [
      'Replaces each given field as a whole, including `props` and `flags`, and keeps the others. Changing `flags` needs the flag `user.update`, even for yourself.',
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
      'Deletes a User, ends its sessions and disables its API keys, none of which may have a flag that the caller lacks. Keys that others still use can first be handed to another User.',
    ],
    params: { username: { description: 'the user name, or the id of the User with `id=true`', example: 'ada' } },
    answer: { message: 'the user ada is deleted' },
    problems: { 400: [lastHolder], 403: [stronger], 404: [noUser] },
  },
  inviteUser: {
    description: [
      'Creates a User and returns the link with which the person chooses a password; if SMTP is set up, the link is also sent by mail. Inviting a User again who has not completed the invite replaces the link and what is given; with `unique: true` that is refused like any taken name.',
    ],
    problems: { 400: taken, 403: [cannotGrant, stronger] },
    limits: [userLimit],
  },
};

export const loginNotes: Readonly<Record<(typeof loginEndpoints)[number]['id'], Note>> = {
  validateInvite: {
    description: ['Tells whether the token of an invite works, and for whom, before a password is chosen.'],
    errorExamples: { 401: { state: 'invalid' } },
  },
  completeInvite: {
    description: [
      'Sets the password and logs the User in. The token works once.',
      'A password that breaks a rule gets 400 with `state` `malformed-password` and the counts; the token stays valid.',
    ],
    errorExamples: { 401: { state: 'expired' } },
  },
  completeSetUp: {
    description: [
      'Creates the first User with the token of the set-up link that `kms serve` shows when it makes an appliance, and logs them in. While there is no User, `kms user set-up-link` makes another link. A link works at most once, until any User is created, and no longer than an invite.',
      'A password that breaks a rule gets 400 with `state` `malformed-password` and the counts; the token stays valid.',
    ],
    errorExamples: { 401: { state: 'expired' } },
  },
  login: {
    description: [
      'Returns an access token. A wrong user name and a wrong password get the same answer after the same time. After too many failures, the next attempt must wait.',
      'A User who has a second factor needs it too. If the password is right and `code` and `passkey` are missing, the answer is 400 with `secondFactor`, the kinds that the User has, and for a passkey with `passkeyOptions` for the browser. Repeat the request with `code` (six digits from an app, or a recovery code) or with `passkey` (what the browser returned) to log in. A code and a recovery code work once; wrong ones count as failures like wrong passwords. Without the right password, nothing reveals whether there is a second factor.',
    ],
    body: { username: 'ada', password: sample.password, code: sample.totpCode },
    problems: {
      400: [{ message: 'wrong user name or password' }],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  passkeyLoginOptions: {
    description: [
      'Returns what `navigator.credentials.get` needs to log in without a user name or password. Nothing is stored for it. The challenge is valid for 5 minutes, on the page that requested it. No body is needed.',
    ],
    problems: { 400: [{ message: noPasskeysHere }] },
  },
  loginWithPasskey: {
    description: [
      'Logs in the User whose passkey it is. The authenticator must have verified the User with a PIN, a fingerprint or a face; the passkey then counts as both factors.',
      'Every failure gets the same answer. After too many failures, the next attempt must wait.',
    ],
    problems: {
      400: [{ message: 'the passkey was not accepted' }, { message: noPasskeysHere }],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  refreshSession: {
    description: [
      'Returns a new access token; the old one ends at once. A session ends 12 hours after its login at the latest, however often it was refreshed.',
      'A page of the console keeps its session in a cookie, whose token lives longer with each refresh. These refreshes are recorded once an hour, as `session.watch`.',
    ],
    problems: { 400: [notASession] },
  },
  logout: {
    description: ['Ends the access token of the request. No body is needed.'],
    problems: { 400: [notASession] },
  },
  changePassword: {
    description: [
      'Sets the password of the User whose access token it is. All other sessions of the User end, and so does an open reset link; the session of the request continues.',
      'The current password is checked as at login: after too many failures, including those of logins, the next attempt must wait. A new password that breaks a rule gets 400 with `state` `malformed-password` and the counts.',
    ],
    problems: {
      400: [{ message: 'the current password is wrong' }, notASession],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  listSessions: {
    description: [
      'Returns the open sessions of the User whose access token it is, so that they can end one that they do not recognise. A session is a login with all its refreshes. With `secondFactors=true`, the second factors come along, as from `GET /auth/user/second-factors`.',
    ],
    problems: { 400: [notASession] },
  },
  endSession: {
    description: ['Ends one session of the User whose access token it is: its access token no longer works.'],
    params: { id: { description: 'id of the session', example: sample.sessionId } },
    problems: { 400: [notASession], 404: [{ message: 'there is no such session' }] },
  },
  endOtherSessions: {
    description: ['Ends every session of the User except the one of the request.'],
    problems: { 400: [notASession] },
  },
  startPasswordReset: {
    description: [
      'If there is a User with this address and SMTP is set up, a link is sent that works once, for 1 hour. The answer is the same for every address. If SMTP is not set up, it says so, and who can help: `no mail goes out from here: ask an administrator, who makes a link with kms user reset-link` (with the command in backquotes).',
    ],
    answer: { message: 'if there is such a user, a link to reset the password is on its way' },
  },
  completePasswordReset: {
    description: [
      'Sets a new password and ends every session of the User. If anything is wrong with the token, the password or the body, the answer is 400 and `{}`.',
    ],
    body: { token: sample.resetToken, password: sample.password },
  },
};

const proven = 'The password, or a code of a second factor, proves that the User still holds the session.';

export const secondFactorNotes: Readonly<Record<(typeof secondFactorEndpoints)[number]['id'], Note>> = {
  listSecondFactors: {
    description: ['Returns the second factors of the User whose access token it is, without any secrets.'],
    problems: { 400: [notASession] },
  },
  beginTotp: {
    description: [
      'Creates the secret for an authenticator app (TOTP, RFC 6238: SHA-1, six digits, 30 seconds), and returns it only once. It has no effect until a code from the app is sent to `/auth/user/second-factors/totp/finish`, within 10 minutes.',
      proven,
    ],
    body: { currentPassword: sample.password, name: 'my phone' },
    problems: { 400: [unsaid, unproven, tooMany, notASession], 429: failures },
  },
  finishTotp: {
    description: [
      'Adds the app by a code that it shows, so that an app that was set up wrong locks nobody out. The first second factor of a User comes with 10 recovery codes, shown only once.',
    ],
    problems: {
      400: [{ field: 'code', message: 'is not the one that the app shows now' }, notASession],
      404: [{ message: 'there is no app to confirm under this id, or no longer' }],
    },
  },
  beginPasskey: {
    description: [
      'Returns what `navigator.credentials.create` needs to make a passkey for the page that requested it. The challenge is valid once, for 5 minutes.',
      proven,
    ],
    body: { currentPassword: sample.password },
    problems: { 400: [unsaid, unproven, tooMany, { message: noPasskeysHere }, notASession], 429: failures },
  },
  finishPasskey: {
    description: [
      'Adds the passkey that the browser made. The make of the authenticator does not matter: attestation is not checked. The first second factor of a User comes with 10 recovery codes, shown only once.',
    ],
    problems: {
      400: [
        { message: 'the passkey was not accepted' },
        { message: 'this passkey is known already' },
        tooMany,
        { message: noPasskeysHere },
        notASession,
      ],
    },
  },
  removeSecondFactor: {
    description: [
      'Removes a second factor; with the last one, the recovery codes are removed too. The last one of a User who is required to have one cannot be removed.',
      proven,
    ],
    body: { id: sample.factorId, currentPassword: sample.password },
    problems: {
      400: [unsaid, unproven, { message: 'you need a second factor here: add another one first' }, notASession],
      404: [{ message: 'there is no such second factor' }],
      429: failures,
    },
  },
  renewRecoveryCodes: {
    description: ['Creates 10 new recovery codes, shown only once; earlier ones no longer work.', proven],
    body: { currentPassword: sample.password },
    problems: {
      400: [unsaid, unproven, { message: 'there is no second factor for which they would stand in' }, notASession],
      429: failures,
    },
  },
};

const noProvider = [{ message: 'no identity provider is set up here' }];

export const oidcNotes: Readonly<Record<(typeof oidcEndpoints)[number]['id'], Note>> = {
  describeOidc: {
    description: [
      'Tells whether the administrator of the machine has set up an identity provider (OpenID Connect) for this tenant, and its name.',
    ],
  },
  startOidc: {
    description: [
      "Returns the address of the provider's page. The person goes there, and the provider redirects them to `/console/oidc` of this service, with `code` and `state` in the query. The login can be finished once, within 10 minutes, with the `binding` from this answer. No body is needed.",
    ],
    problems: { 404: noProvider, 429: [{ message: 'too many failed logins; try again in 4 s' }] },
  },
  finishOidc: {
    description: [
      'Exchanges the code with the provider, checks the ID token and returns an access token, as a login with a password does. At the first login the configured claim decides which User it is, from then on the subject (`sub`) of the ID token. An e-mail address counts only if the provider has verified it.',
      'While the provider cannot be reached, the answer is 503 and nothing is stored; Users with a password can log in with that.',
    ],
    problems: {
      400: [
        { message: 'this login was not begun here, or is over: begin it again' },
        { message: 'what came back from the identity provider does not hold: begin the login again' },
      ],
      403: [
        { message: 'no user here belongs to this login: ask an administrator' },
        { message: 'the identity provider gives no verified e-mail address' },
      ],
      404: noProvider,
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
    limits: [userLimit],
  },
};
