// Who may do what: credentials, sessions, passwords, and permission flags.

import { flagTable, maxFlagLength } from '../../model/flags.ts';
import type { Section } from '../prose.ts';

export const accessSections: readonly Section[] = [
  {
    id: 'authentication',
    title: 'Credentials',
    blocks: [
      'Every endpoint needs `Authorization: Bearer` with an API key or an access token, but for these: login, both steps of a password reset, both steps of completing an invite, setting up the first User, `/healthz`, `/readyz`, `/openapi.json`, `/docs`, the state of the seal, unsealing, and the files of the console.',
      [
        "An API key's secret is `kms_`, then 43 base62 characters made of 256 random bits, then 6 characters of checksum: CRC-32 of all that stands before them, in base62 with the digits `0-9A-Za-z`, padded with zeros. So a mistyped key is refused without a look-up, and secret scanners find leaked ones.",
        'Only a hash of the secret is stored. It is in no log, no activity, no error and no metric, not even where it is a path parameter.',
        'An access token is opaque, stored as a hash, and lives for 1 hour. It acts with the flags that its User has at that moment. `GET /auth/basic/refresh` exchanges it for a new one and ends the old one at once; no chain of refreshes outlives 12 hours after the login. `POST /auth/basic/logout` ends it. Both answer 400 to an API key, which has no session.',
        "Changing or resetting a User's password ends all of its sessions. So does deleting the User.",
        'An invite works for 7 days, a reset link for 1 hour, and each of them once. A token that was used, replaced or never given out is `invalid`; one past its time is `expired`.',
        'The operator can set other lifetimes: `kms serve --access-ttl --session-max --invite-ttl --reset-ttl`, each such as `30s`, `15m` or `7d`.',
      ],
    ],
  },
  {
    id: 'logins',
    title: 'Logins and passwords',
    blocks: [
      [
        'A wrong user name and a wrong password get one answer, after the same time: 400.',
        'After 5 failures in a row for one name from one address, 50 for one name from anywhere, or 50 from one address with any name (an IPv4 address, the /64 of an IPv6 address, and the /48 around it), each further try has to wait: 1 second, then twice as long each time, up to 15 minutes. Until then it is refused with 429 and `Retry-After`. A refused try does not make the wait longer, and a success ends it.',
        'Passwords are hashed with argon2id (m = 19 MiB, t = 2, p = 1, 16 bytes of salt).',
        'A password has at least 8 characters, with at least one upper-case letter, one lower-case letter, one digit and one special character. Characters are Unicode code points; letters and digits go by their Unicode category; special is what is neither. More than 1,024 bytes of UTF-8 are malformed.',
        'Completing an invite with a password that breaks a rule gets 400 with `state` `malformed-password` and each count; a missing or mistyped field is an ordinary 400. Completing a reset goes by the same rules, and every 400 of it is `{}`.',
        'Asking for a reset link always gets the same 200 after the same time, whether or not there is such a User. The link goes out by mail where SMTP is set up; otherwise the operator makes one with `kms user reset-link`.',
      ],
    ],
  },
  {
    id: 'flags',
    title: 'Permission flags',
    blocks: [
      `\`flags\` of an API key or a User is a flat object of flag name to boolean. A name has 1 to ${maxFlagLength} characters; anything else is 400. Only \`true\` grants. Names compare in lower case. Names that are not in the table are allowed, for programs that keep flags of their own; they grant nothing here, and the command line and the console warn of them.`,
      { head: ['flag', 'grants'], rows: flagTable.map(({ flag, grants }) => [`\`${flag}\``, grants]) },
      'Wildcards:',
      [
        '`*` in place of the name of the ring: `keyring.*.rotate` is rotating every ring.',
        '`*` in place of the operation: `keyring.payroll.*` is every operation on one ring.',
        'Both: `keyring.*.*` is every operation on every ring, but not creating and listing them.',
        '`*` in place of all of a resource: `user.*` is everything with Users. `keyring.*` is everything with KeyRings, creating and listing too; `asym.*` likewise.',
      ],
      'Rules:',
      [
        'Without the flag: 403, and the message names the flag. Nothing is changed.',
        'Whether a ring exists is not told to who may not know it: without the flag, an unknown ring gets 403 too. Who holds a wildcard that would let in gets 404.',
        'Nobody grants what they do not have. Creating or updating an API key or User with a flag that the caller lacks gets 403.',
        'Nobody touches what is stronger. Updating, disabling, moving, deleting, inviting again or resetting an API key or User that has a flag which the caller lacks gets 403. Oneself is excepted. The same holds for what goes along: the API keys that deleting a User disables, and those that deleting an Account deletes.',
        'The last active API key or User who can log in that holds `*` cannot be deleted, disabled or given fewer flags, itself included: 400. `kms` on the appliance itself can.',
        'A User may always read and change itself. Naming its own `flags`, to have more or fewer, takes `user.update`.',
        'An API key that is created with an access token belongs to that User, and is in its `keys`. Deleting the User disables it.',
        'A ring is used by an API key when a true flag of the key names it: `keyring.<ringname>.…` or `keyring.<ringname>.*`. A wildcard in place of the name does not count. A ring that an active API key other than the caller uses cannot be deleted: 400.',
        '`GET /auth/search/keyring/{keyringname}/apikey` lists the API keys that use a ring, and with `wildcard=true` also those that a wildcard lets in.',
        'The tenant `default` is the operator tenant: the flags `system.*` count there alone. Elsewhere what they are for gets 403, whatever flags the caller has, `*` too.',
      ],
    ],
  },
];
