// Notes on Users, invites, logins, sessions, passwords and second factors.

import { sample } from '../../api/example-values.ts';
import type { loginEndpoints } from '../../api/logins.ts';
import type { oidcEndpoints } from '../../api/oidc.ts';
import type { secondFactorEndpoints } from '../../api/second-factors.ts';
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
const noPasskeysHere = 'passkeys need a page at a host name, not at an address of numbers';
const unproven = { message: 'the current password or the code is wrong' };
const unsaid = { field: 'currentPassword', message: 'is required, or a code in its place' };
const tooMany = { message: 'there are 20 second factors already: remove one first' };
const failures = [{ message: 'too many failed logins; try again in 4 s' }];
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
      'A User who has a second factor needs it too. Where the password is right and `code` and `passkey` are missing, the answer is 400 with `secondFactor`, the kinds that the User can bring, and for a passkey with `passkeyOptions` for the browser. The same request once more, with `code` (six digits of an app, or a recovery code) or with `passkey` (what the browser answered), logs in. A code and a recovery code work once; wrong ones count as failures like wrong passwords. Without the right password nothing tells whether there is a second factor.',
    ],
    body: { username: 'ada', password: sample.password, code: sample.totpCode },
    problems: {
      400: [{ message: 'wrong user name or password' }],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  passkeyLoginOptions: {
    description: [
      'Answers what `navigator.credentials.get` needs to log in without a name and a password. Nothing is kept for it: the challenge is good for 5 minutes, at the page from which it was asked for. No body is needed.',
    ],
    problems: { 400: [{ message: noPasskeysHere }] },
  },
  loginWithPasskey: {
    description: [
      'Logs in the User whose passkey it is. The authenticator must have seen to it that it is they, by a PIN, a finger or a face: then the passkey is both factors.',
      'Whatever is wrong, the answer is one; too many failures make the next try wait.',
    ],
    problems: {
      400: [{ message: 'the passkey was not accepted' }, { message: noPasskeysHere }],
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

const proven = 'The password, or a code of a second factor, shows that it is still the User who has the session.';

export const secondFactorNotes: Readonly<Record<(typeof secondFactorEndpoints)[number]['id'], Note>> = {
  listSecondFactors: {
    description: ['Answers the second factors of the User whose access token it is, without a secret of any.'],
    problems: { 400: [notASession] },
  },
  beginTotp: {
    description: [
      'Makes the secret for an app that shows codes (TOTP, RFC 6238: SHA-1, six digits, 30 seconds), and answers it this once. It counts for nothing until a code of it came to `/auth/user/second-factors/totp/finish`, within 10 minutes.',
      proven,
    ],
    body: { currentPassword: sample.password, name: 'my phone' },
    problems: { 400: [unsaid, unproven, tooMany, notASession], 429: failures },
  },
  finishTotp: {
    description: [
      'Adds the app by a code that it shows, so that nobody is locked out by one that was set up wrong. With the first second factor of a User come 10 recovery codes, told this once.',
    ],
    problems: {
      400: [{ field: 'code', message: 'is not the one that the app shows now' }, notASession],
      404: [{ message: 'there is no app to confirm under this id, or no longer' }],
    },
  },
  beginPasskey: {
    description: [
      'Answers what `navigator.credentials.create` needs to make a passkey for the page from which it is asked for. The challenge is good for 5 minutes, and once.',
      proven,
    ],
    body: { currentPassword: sample.password },
    problems: { 400: [unsaid, unproven, tooMany, { message: noPasskeysHere }, notASession], 429: failures },
  },
  finishPasskey: {
    description: [
      'Adds the passkey that the browser made. Which make the authenticator is does not matter: attestation is not looked at. With the first second factor of a User come 10 recovery codes, told this once.',
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
      'Removes a second factor; with the last one the recovery codes go too. The last one of a User who needs one stays.',
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
    description: ['Makes 10 new recovery codes, told this once; those before work no longer.', proven],
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
      'Says whether the administrator of the machine has set up an identity provider (OpenID Connect) for this tenant, and what it is called.',
    ],
  },
  startOidc: {
    description: [
      "Answers the address of the provider's page. The person goes there, and the provider leads them back to `/console/oidc` of this service, with `code` and `state` in the query. The login can be finished once, within 10 minutes, with the `binding` that this answers. No body is needed.",
    ],
    problems: { 404: noProvider, 429: [{ message: 'too many failed logins; try again in 4 s' }] },
  },
  finishOidc: {
    description: [
      'Exchanges the code with the provider, checks the ID token and answers an access token, as a login with a password does. Which User it is says the claim that was set up, at the first login; from then on the subject (`sub`) of the ID token does. An e-mail address counts only if the provider has verified it.',
      'While the provider cannot be reached the answer is 503, and nothing is stored; whoever has a password can log in with it.',
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
