// The guide: all rules of the API beyond single endpoints, in the order in which a developer needs them. First what
// holds for every request; then permissions; then keys, encryption and Assets; last people, records and the appliance
// itself.

import { defaultLimit, maxLimit } from '../api/page.ts';
import { maxDepth, maxEntries, maxValues } from '../api/values.ts';
import { flagTable, maxFlagLength, maxFlags } from '../model/flags.ts';
import { keyTypeFacts, keyTypes } from '../model/key-types.ts';
import type { Section } from './prose.ts';

export const guide: readonly Section[] = [
  {
    id: 'overview',
    title: 'What the service does',
    blocks: [
      'The service issues the keys that files and records are encrypted with on the client. It stores nothing that would open them, and it records who asked for what.',
      [
        'A KeyRing has a key pair and a list of keys, the newest of which encrypts. Each key is wrapped to the public key of its ring; only the holder of the private key can use it.',
        '`POST /ks/encrypt` returns a wrapped key, a hash and a header. The header goes in front of the ciphertext. `POST /ks/decrypt` takes the header and returns the wrapped key again.',
        'A header can carry a signed Asset: a stored record about what was encrypted. Decrypt says whether its signature is valid.',
        'Users log in with a password and get an access token. Accounts own API keys. Permission flags decide what both may do.',
        'Every request is recorded in an activity log that proves its own completeness.',
        'The asym service has KeyRings of its own, with a smaller interface.',
        'Managed keys are held by the appliance, which works with them for software that leaves no other choice.',
      ],
    ],
  },
  {
    id: 'tenants',
    title: 'Tenants and addresses',
    blocks: [
      'One appliance serves one or several tenants. Each has an id, a name, host names, limits, and its own database, keys, signing keys and activity log. They share the process and nothing else.',
      [
        'A request belongs to the tenant that lists the host in its `Host` header; the port and the case do not matter.',
        'At most one tenant lists `*`: it answers for every host that no other tenant lists. The first tenant, `default`, starts with `*` unless `kms init --host` names hosts.',
        'A host of no tenant gets 404 with a `message`.',
        "Another tenant's API key or access token is a wrong credential: 401.",
        "Another tenant's hash, header, cursor or id means nothing here: it is refused as undecodable, or not found.",
      ],
    ],
  },
  {
    id: 'ids',
    title: 'Ids, times and order',
    blocks: [
      [
        'An id is a prefix and a ULID in lower case: `ring_`, `key_`, `asset_`, `user_`, `acct_`, `apik_`, `act_`.',
        'A time that is a string is RFC 3339 in UTC with milliseconds, such as `2026-01-02T03:04:05.678Z`. A time that is an integer, in a request or an answer, counts milliseconds since 1970-01-01T00:00:00Z.',
        '`start` and `end` of a search are inclusive.',
        'Lists are oldest first. Searches of Assets and of activity are newest first.',
      ],
    ],
  },
  {
    id: 'pages',
    title: 'Pages',
    blocks: [
      'Lists and searches return pages: `data` with the items and `pagination`. `cursor` and `limit` are always query parameters, for POST too; the filters of a POST search go into the body.',
      [
        `\`limit\` is ${defaultLimit} by default. More than ${maxLimit.toLocaleString('en')} counts as ${maxLimit.toLocaleString('en')}. Anything that is not an integer, or is below 1, gets 400.`,
        '`nextCursor` is present only while `hasMore` is true. Send it as `cursor`, with the same filters, for the next page.',
        'A page of long items ends at about 4 MiB: it may hold fewer items than `limit` while `hasMore` is true. Only `hasMore` tells whether a list is at its end.',
        'The service continues while a page is read: each item is as it was at one moment, none appears twice, and none that existed throughout is missing.',
        'A cursor is opaque and URL-safe. It belongs to the tenant, the endpoint and the filters that it came from: if it was altered, or is sent with other filters, to another endpoint or to another tenant, the answer is 400.',
        'Every encoding is canonical. Changing a spare bit is a change, in cursors as in hashes and headers.',
        'If records are added or removed between two pages, no other record appears twice or gets lost.',
      ],
    ],
  },
  {
    id: 'bodies',
    title: 'Bodies',
    blocks: [
      [
        'A POST, PUT or PATCH that takes a body needs `Content-Type: application/json`; `charset=utf-8` is fine. Without it: 400. Another `charset`, or a `Content-Encoding` such as `gzip`: 415.',
        'A request is checked in this order: tenant, credential (401), permission flag (403), body. Without a known credential, or without a flag that does not depend on the body, it is answered before a byte of its body is read, and before `100 Continue`.',
        'Invalid JSON, a body that is not an object, a required field that is missing or empty, or a wrong type gets 400. `message` names the first field, `errors` lists them, at most 20.',
        'Fields that the endpoint does not know are ignored.',
        'A body over 1 MiB gets 413; the operator can set another limit. Endpoints that need no credential take bodies of at most 16 KiB.',
        `Lists such as \`parents\` have at most ${maxEntries.toLocaleString('en')} entries, \`flags\` at most ${maxFlags.toLocaleString('en')} names; more gets 400. No answer from 400 to 499 is longer than 64 KiB.`,
        'A boolean in a query is `true` or `false`; anything else gets 400.',
        `Free-form objects (\`props\`, \`data\` and the like) take any properties, nest at most ${maxDepth} levels, and hold at most ${maxValues.toLocaleString('en')} values in all; the object itself is the first, and arrays count. Deeper gets 400. Numbers are kept as IEEE 754 doubles; an integer that cannot be kept exactly is refused.`,
        '`__proto__`, `constructor` and the like are keys like any other.',
        'An unknown path gets 404. A known path with another method gets 405, and `Allow` lists the methods.',
      ],
    ],
  },
  {
    id: 'errors',
    title: 'Errors',
    blocks: [
      'An error is a JSON object with a `message` for people. If fields of the request are wrong, `errors` says what is wrong with each. The exceptions are shown with their endpoints: invites return a `state`, a password reset returns `{}`, and decrypt returns its result with 422.',
      {
        head: ['status', 'when'],
        rows: [
          [
            '400',
            'the request breaks a rule: a field is missing or wrong, a name is taken, a cursor is not one of this list, a login is wrong',
          ],
          [
            '401',
            'no usable credential: missing, wrong, disabled, expired, of another tenant, or without `Bearer`. `WWW-Authenticate: Bearer` comes with it',
          ],
          ['403', 'a permission flag is missing, which the message names; or a limit of the tenant is reached'],
          ['404', 'no such thing, no such path, or a host of no tenant'],
          ['405', 'the path takes other methods; `Allow` lists them'],
          ['413', 'the body is over the limit'],
          ['415', 'the body is compressed, or not in UTF-8'],
          ['422', 'the Asset in a header does not verify'],
          ['429', 'too many failed attempts; `Retry-After` says how many seconds to wait'],
          ['500', 'a failure of the server, without effect; find it in the log by `X-Request-Id`'],
          [
            '503',
            'the appliance is sealed, or cannot write right now; or a file that is needed is missing or changed, which the message names',
          ],
        ],
      },
      'Requests that are not well-formed HTTP are answered in the same form: 400 for a malformed request or one without exactly one `Host`, 405 for a method that no path takes, 408 for a request that took too long to arrive, 417 for an unknown `Expect`, 431 for headers that are too large, 501 for a `Transfer-Encoding` other than `chunked`.',
      'After a 5xx you may send the request again. After a 4xx it will fail again until you change it, except that waiting helps after a 429, and renewing the credential after a 401.',
    ],
  },
  {
    id: 'authentication',
    title: 'Credentials',
    blocks: [
      'Every endpoint needs `Authorization: Bearer` with an API key or an access token, except these: login, both steps of a password reset, both steps of completing an invite, setting up the first User, `/healthz`, `/readyz`, `/openapi.json`, `/docs`, the state of the seal, unsealing, and the files of the console.',
      [
        "An API key's secret is `kms_`, then 43 base62 characters made of 256 random bits, then 6 characters of checksum: CRC-32 of everything before them, in base62 with the digits `0-9A-Za-z`, padded with zeros. So a mistyped key is refused without a look-up, and secret scanners find leaked ones.",
        'Only a hash of the secret is stored. It appears in no log, activity, error or metric, not even if it is a path parameter.',
        'An API key can have an expiry and a list of addresses that it may be used from. From `expiresAt` on it behaves as if inactive. With `allowedAddresses`, requests from elsewhere get 401, as with a wrong credential, and are recorded as denied. The address is that of the connection or, with `kms serve --behind-proxy`, the last one in `X-Forwarded-For`. Over the local socket and in process there is none, and the key is accepted. `lastUsedAt` is the time of the last granted request, to the minute; polls that are not recorded do not count.',
        'An access token is opaque, stored as a hash, and valid for 1 hour. It has the flags that its User has at that moment. `GET /auth/basic/refresh` exchanges it for a new one and ends the old one at once; no chain of refreshes lasts longer than 12 hours after the login. `POST /auth/basic/logout` ends it. Both answer 400 to an API key, which has no session.',
        "The console's own pages keep their session in a cookie that no script can read. It counts only beside the header `Kms-Console`, with a key that no other origin can learn, and never beside `Authorization`; a request from a page elsewhere, judged by `Sec-Fetch-Site` and `Origin`, cannot use it. With that header `accessToken` and `accesstoken` are empty in answers. Programs do not use it, and no cookie by itself is a credential anywhere.",
        "Resetting a User's password ends all of its sessions; changing one's own (`POST /auth/user/password`) ends all except that of the request. Deleting the User ends all of them.",
        "`GET /auth/user/sessions` lists a User's own sessions, with where and when (to the minute) each was last used; `DELETE` ends one of them, or all others. With an API key both are 400.",
        'An invite works for 7 days, a reset link for 1 hour, and each of them once. A token that was used, replaced or never issued is `invalid`; one that is too old is `expired`.',
        'The operator can set other lifetimes: `kms serve --access-ttl --session-max --invite-ttl --reset-ttl`, each such as `30s`, `15m` or `7d`.',
      ],
    ],
  },
  {
    id: 'logins',
    title: 'Logins and passwords',
    blocks: [
      [
        'A wrong user name and a wrong password get the same answer after the same time: 400.',
        'After 5 failures in a row for one name from one address, 50 for one name from anywhere, or 50 from one address with any name (an IPv4 address, the /64 of an IPv6 address, and the /48 around it), each further attempt must wait: 1 second, then twice as long each time, up to 15 minutes. Earlier attempts are refused with 429 and `Retry-After`. A refused attempt does not make the wait longer, and a success ends it.',
        'A User can have second factors in addition to the password: authenticator apps (TOTP, RFC 6238) and passkeys (Web Authentication), with 10 recovery codes. From then on a login needs one of them, in `code` or `passkey`. A wrong one counts as a failure like a wrong password; without the right password nothing reveals whether there is one. A passkey whose authenticator verifies the user is enough by itself, at `POST /auth/passkey/login`.',
        'The operator can require a second factor of every User who has certain permission flags (`kms tenant update NAME --second-factor-for FLAG`), including by a wildcard that covers one; if FLAG is a wildcard, any flag that it covers counts. Until such a User has one, its access tokens get 403 for everything that needs a flag, and for reading and changing the User: only its own second factors, sessions and password remain. API keys need none.',
        'Passwords are hashed with argon2id (m = 19 MiB, t = 2, p = 1, 16 bytes of salt).',
        'A password has at least 8 characters, with at least one upper-case letter, one lower-case letter, one digit and one special character. Characters are Unicode code points; letters and digits go by their Unicode category; all others are special. More than 1,024 bytes of UTF-8 are malformed.',
        'Completing an invite with a password that breaks a rule gets 400 with `state` `malformed-password` and each count; a missing or mistyped field is an ordinary 400. Completing a reset has the same rules, and each 400 is `{}`.',
        'Asking for a reset link always gets the same 200 after the same time, whether or not there is such a User. If SMTP is set up, the link is sent by mail; otherwise the answer says that the operator makes one with `kms user reset-link`.',
      ],
    ],
  },
  {
    id: 'flags',
    title: 'Permission flags',
    blocks: [
      `\`flags\` of an API key or a User is a flat object of flag name to boolean. A name has 1 to ${maxFlagLength} characters; anything else is 400. Only \`true\` grants. Names compare in lower case. Names that are not in the table are allowed, for programs with their own flags; they grant nothing here, and the command line and the console warn about them.`,
      { head: ['flag', 'grants'], rows: flagTable.map(({ flag, grants }) => [`\`${flag}\``, grants]) },
      'Wildcards:',
      [
        '`*` instead of the name of the ring: `keyring.*.rotate` allows rotating every ring.',
        '`*` instead of the operation: `keyring.payroll.*` allows every operation on one ring.',
        'Both: `keyring.*.*` allows every operation on every ring, but not creating and listing them.',
        '`*` for all of a resource: `user.*` allows everything with Users. `keyring.*` allows everything with KeyRings, including creating and listing; so do `asym.*` and `key.*` for theirs.',
      ],
      'Rules:',
      [
        'Without the flag: 403, and the message names the flag. Nothing is changed.',
        'Callers without the flag do not learn whether a ring exists: they get 403 for an unknown ring too. With a wildcard that covers it, they get 404.',
        'Nobody can grant what they do not have. Creating or updating an API key or User with a flag that the caller lacks gets 403.',
        'Nobody can change an API key or User with more permissions than their own. Updating, disabling, moving, deleting, inviting again or resetting one that has a flag which the caller lacks gets 403, except for oneself. The same holds for indirect effects: the API keys that deleting a User disables, and those that deleting an Account deletes.',
        'The last holder of `*`, an active API key or a User who can log in, cannot be deleted, disabled, or given fewer flags or an `expiresAt`, not even by itself: 400. An API key with an expiry does not count as another holder, nor does a User who has not completed the invite. `kms` on the appliance itself can do it.',
        'A User may always read and change itself. Changing its own `flags`, either way, needs `user.update`.',
        'An API key that is created with an access token belongs to that User, and is in its `keys`; `PUT /auth/apikeyid` with `owner` hands a key to another. Deleting the User disables it.',
        'An API key uses a ring if a true flag of the key names it: `keyring.<ringname>.…` or `keyring.<ringname>.*`. A wildcard instead of the name does not count. A ring cannot be deleted while an active, unexpired API key other than the caller uses it: 400.',
        '`GET /auth/search/keyring/{keyringname}/apikey` lists the API keys that use a ring, and with `wildcard=true` also those that match by a wildcard.',
        'The tenant `default` is the operator tenant: the flags `system.*` count only there. In other tenants their operations get 403, whatever flags the caller has, even `*`.',
      ],
    ],
  },
  {
    id: 'rings',
    title: 'KeyRings and keys',
    blocks: [
      [
        'The name of a ring is a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens (ASCII); any other is 400. `name` is its lower-case form, which is unique and used for look-ups; `displayName` is the name as given.',
        'A ring of the key service and one of the asym service may have the same name: they are independent.',
        'The `kem` of a ring says how its keys are wrapped: `x25519`, or `mlkem768-x25519` (X-Wing), which is hybrid: it is safe while either ML-KEM-768 or X25519 is, so a quantum computer alone cannot open what was recorded. It is chosen when the ring is made. Without `kem` and `publicKey` it is `x25519`, unless `kms serve --default-kem` says otherwise; a `publicKey` decides it, and one that contradicts a given `kem` is 400.',
        'A `publicKey` of `x25519` in a request is base64 of SPKI DER, PEM, or base64 of the 32 raw bytes; a point of low order is 400. A hybrid one has 1,216 bytes and is base64 of SPKI DER or PEM with the OID of X-Wing, 1.3.6.1.4.1.62253.25722, base64 of the bytes, or a JWK (`kty` AKP, `alg` MLKEM768-X25519); 400 if its ML-KEM part fails the modulus check (FIPS 203) or its X25519 part is of low order. Anything else is 400. In an answer it is base64 of SPKI DER, and a hybrid `privateKey` is base64 of PKCS#8 DER with the same OID and the seed of 32 bytes.',
        '`PUT /ks/config` can give a ring a new `publicKey`, even of the other `kem`: later keys are wrapped to it, earlier ones stay as they are and need the earlier private key. Each key has its own `kem`, and shows its `publicKey` where it is read or listed.',
        'If no `publicKey` is given, the appliance makes a pair and returns the `privateKey`, base64 of PKCS#8 DER, once. It is never stored. Afterwards nobody, including the operator, can read the keys of the ring from the appliance, and nobody can recover a lost private key.',
        'A key is 32 random bytes, made inside the appliance, wrapped to the public key of its ring, and forgotten.',
        'A ring keeps all of its keys. `activeKey` is the newest, and encrypts; the others still decrypt.',
        "`props` are kept with the ring, `keyProps` with its keys; both are `{}` by default. `config.props` are the ring's `props`. `config.key.props` start as `keyProps` and apply to future keys.",
        '`maxEncryptCount` says how many encrypts a key serves. The next one rotates the ring first, in the same transaction. It is an integer of at least 1, else 400; the default is 4,294,967,296.',
        '`PUT /ks/config` replaces what it names, keeps the rest, and returns the whole configuration.',
        'A deleted ring is gone at once and its name is free. For 30 days `POST /ks/keyrings/{id}/restore` or `kms keyring restore` brings it back by its id; then its keys are erased. Restoring returns 404 if there is nothing to restore, and 400 if another ring has the name by now.',
        'An unknown ring is 404 everywhere, including the asym service.',
      ],
      'How a key is wrapped: HPKE (RFC 9180), base mode, single shot, with HKDF-SHA256 and AES-256-GCM; the KEM is DHKEM(X25519, HKDF-SHA256), or for `mlkem768-x25519` the one of id 0x647a. `aad` is the id of the key in UTF-8. `enc ‖ ct` is the encapsulated key (32 bytes, or 1,120), then the ciphertext (48 bytes).',
      {
        head: ['service', '`info`', '`keyData`'],
        rows: [
          [
            'key service',
            '`kms/ks/key/v1`',
            '`{"encrypted": {"key": {"value": base64(enc ‖ ct), "encoding": "base64"}}, "iv": base64(HPKE base nonce)}`',
          ],
          ['asym service', '`kms/asym/key/v1`', '`{"key": base64(enc ‖ ct)}`; `type` is `AES256`'],
        ],
      },
    ],
  },
  {
    id: 'hash-and-header',
    title: 'Encrypt, hash, header, decrypt',
    blocks: [
      [
        'A `hash` is URL-safe, at most 128 characters long, and different for each encrypt. Only this tenant can tell which ring and key it stands for. Nothing is stored for it, and resolving it reads only the ring and the key.',
        'A hash that cannot be decoded, or was altered, is 400. One whose ring or key is gone is 404.',
        'A `header` is URL-safe, at most 1,024 characters long, and meant to stand in front of a ciphertext. It holds the version of its format (1), the hash, and, with an Asset, its id, version and Ed25519 signature.',
        '`GET /ks/header/{header}`: one that cannot be decoded, or whose ring is gone, is 404. One that can be decoded but was altered has `valid` false.',
        '`POST /ks/decrypt`: a header that cannot be decoded is 400, one whose ring is gone is 404. One that was altered is 400, or 422 if only the part of the Asset does not verify.',
        '`POST /ks/decrypt` takes a hash, a header, or both. Neither, or two that differ, is 400. With a hash alone, or a header without an Asset, there is no `asset` in the answer.',
      ],
    ],
  },
  {
    id: 'assets',
    title: 'Assets',
    blocks: [
      [
        "The signature covers the canonical JSON (RFC 8785) of the Asset's id, version, parents and data, and the hash. `GET /assets/signing-keys` publishes the keys that verify it.",
        '`asset: {}` in an encrypt makes an Asset with empty data. It belongs to the ring that it was made with. Encrypt returns all of it: `{id, createdAt, data, parents}`.',
        'With `assetId` an encrypt gives that Asset a new version. What the request does not name is kept; `data` and `parents` are each replaced as a whole; `createdAt` remains that of the first version.',
        'An older header verifies against the version that it signed, and `asset.data` is the data of that version.',
        'An Asset that was deleted does not verify: 422, with `valid` false. `asset.message` explains the verdict.',
        'An `assetId` that is unknown, deleted, or of another ring is 404. A parent that is unknown or deleted, or an Asset as its own ancestor, is 400.',
        'A search covers current versions. All given filters must match. `parents` finds Assets that have all of these; `data` finds Assets whose data contains this object, at any depth, with arrays and single values compared as a whole.',
      ],
    ],
  },
  {
    id: 'managed-keys',
    title: 'Managed keys',
    blocks: [
      'The appliance holds managed keys and works with them itself. Who has the master key and the database can use them, unlike the keys of a KeyRing. Neither kind works at the endpoints of the other: 400.',
      [
        'A path names a managed key by its name, its id or one of at most 50 aliases. Names are as those of KeyRings. An alias may contain `/`, which a path has as `%2F`. Flags name a key by its name alone.',
        'A key has versions, counted from 1. The newest active one is its primary version: it encrypts, signs, makes MACs, wraps and derives, unless a request names another `keyVersion`. `minEncryptVersion` and `minDecryptVersion` exclude older ones.',
        'With `rotateAfter` the next use of a primary version of that age makes a new version first.',
        'Ciphertexts, signatures and MACs are `vault:v`, the version, `:` and base64. What is wrapped or derived does not name its version.',
        'A tenant may be barred from managed keys: then making one is 403.',
      ],
      'The `type` of a key says what it can be used for; `uses` are chosen from that when it is made, and never change:',
      {
        head: ['type', 'one of these sets of uses, the usual ones first'],
        rows: keyTypes.map((type) => [
          `\`${type}\``,
          keyTypeFacts[type].purposes
            .map(({ possible }) => possible.map((use) => `\`${use}\``).join(', '))
            .join('; or '),
        ]),
      },
      'A key and each of its versions has a `state`, in the words of NIST SP 800-57. What both allow can be done:',
      {
        head: ['state', 'what can be done'],
        rows: [
          ['`pre-active`', 'nothing until `activateAt`, or until it is activated'],
          ['`active`', 'everything that the key is for'],
          ['`suspended`', 'nothing, until it is active again'],
          ['`deactivated`', 'decrypt, unwrap and verify what is old, with a `warning`; export'],
          ['`compromised`', 'the same; it never becomes active again'],
          ['`pending-deletion`', 'nothing; it can be restored for 7 to 30 days, as chosen at its deletion'],
          ['`destroyed`', 'nothing: its bytes are erased, and what is known of it is kept'],
        ],
      },
      [
        '`activateAt` and `deactivateAt` change the state by themselves, at the first use or look after them.',
        'Only an `exportable` key can be exported. `exportable` can be taken away, and never given back.',
        '`GET /managed-keys/{key}/dependents` says who used which version, through which dialect, for what, how often and when last. Suspending or deleting what was used in the last 24 hours needs `used`, else it is 400.',
        'A record of work with a key has its `keyVersion` in `props`, and `dialect` if the caller spoke another interface than this one. A change of state has `state`; an import or export has `transfer`: `wrapped`, `plaintext` or `public`.',
      ],
    ],
  },
  {
    id: 'people',
    title: 'Users, Accounts and API keys',
    blocks: [
      [
        'User names and e-mail addresses are unique and looked up regardless of case. A taken one is 400 with `errors.username` or `errors.email`. The `uid` of an Account is unique too, and case-sensitive.',
        'A User has `flags`, which are optional when it is created or invited; anyone who may update Users can change them.',
        'An invite creates the User at once, but it cannot log in before the invite is completed. Inviting a User again who has not completed replaces the token. `loginUrl` is `{base_url}/console/invite?token=…`.',
        'PATCH replaces each field that it names, `props` and `flags` as a whole, and keeps the others.',
        'An unknown User, Account, API key or activity is 404. Deleting an Account deletes its API keys.',
        'Updating an API key: with `op` `merge`, given values are set, merging deeply in `props`; with `replace`, they replace the whole field; with `delete`, the named entries of `flags` and `props` are removed. `active` and `references` are set if given, whatever `op` is.',
        '`PUT /auth/apikeyid` returns `keyid`, `op`, `active`, `references`, `flags` and `props`.',
        '`POST /auth/validate`: `valid` means that the key exists in this tenant and is active. With `activity`, that record is stored for the validated key; `validAction` defaults to `valid`, and `createdAt` to now. Its `action` is your own word of at most 256 characters, but none of the names that the service itself records; its `ringname` has the form of a keyring name; its `props` are at most 64 KiB of JSON. `reporter` in the record is the id of the caller.',
      ],
    ],
  },
  {
    id: 'activity',
    title: 'Activity',
    blocks: [
      [
        'Every request to a known path with a known credential, even a disabled or expired one, is recorded before it is answered, whether granted or denied. If the record cannot be made durable, the request fails with 500 and has no effect. A denied request changes nothing else. Only polls of `GET /system/overview` and `GET /system/names` with `If-None-Match`, and the refreshes by which a console page keeps its session, are recorded less often: once an hour for each credential and address, as `session.watch`.',
        "Backups, sealing, unsealing and changes of the master key concern the whole appliance: each tenant has a record of them, with `props.by` = `operator`. The `keyid` of other tenants' records is `operator`, `local` or `network`.",
        '`action` is the flag without the name of the ring (`keyring.encrypt`, `user.invite`), or `session.refresh`, `session.end`, `system.seal`; `none` if the path does not take the method. `ringname` is the ring. With an access token, `keyid` is the id of the User. `address` is where the request came from.',
        'Requests without a credential are recorded if they have the name or the link of a User, under the id of that User: logins as `session.create`, granted or denied, but not those that must wait (429); completed invites as `user.invited`, resets as `user.reset`. Failed logins under unknown names are only counted, in `/metrics`. Recoveries by clients of Tang, which have no credential, are recorded as `tang.recover` by `network`.',
        'In the records of the service itself, `props` says what was done: `object` is what was made, changed or removed (`type`, `id`, `name`), `objects` what else was affected (at most 100, with `objectCount` if there are more), `changed` the names of the fields that changed, `granted` and `revoked` the names of permission flags. Empty values are left out; reads, encrypts, decrypts and refused requests have none of these. It never holds a secret, or anything from a body except names.',
        '`validAction` is the verdict of authorization, whatever happened to the request afterwards; `status` is its result.',
        '`props` is free-form, for records that programs store with `POST /auth/validate`; those also have `reporter`: the caller who stored them. Records of the service itself have none. A search for `props` matches like the one for the `data` of Assets.',
        'The records of a tenant form a hash chain. `kms activity verify` proves that none was changed, dropped or moved.',
      ],
    ],
  },
  {
    id: 'limits',
    title: 'Limits',
    blocks: [
      'A tenant can have limits on KeyRings, keys of each ring, Users, Accounts, API keys, Assets, and versions of Assets, where each stored version of each Asset counts. There are no limits until the operator sets them with `kms tenant limits`. A request that would exceed one gets 403 with a `message` that names it.',
      'If KeyRings are limited, so are the deleted ones that can still be restored: to ten times as many, and at least 100. Beyond that nobody can create another KeyRing until the 30 days of some are over.',
      'A User has at most 1,000 sessions at once: one more ends the oldest.',
    ],
  },
  {
    id: 'appliance',
    title: "The appliance's own endpoints",
    blocks: [
      [
        '`GET /healthz` answers 200 while the process is alive. `GET /readyz` answers 200 while the appliance is unsealed and can write, otherwise 503 with the reason.',
        "`GET /metrics` returns Prometheus' text format. `POST /system/backup` returns a sealed backup of the whole appliance, as `application/octet-stream`.",
        'The appliance is sealed while its master key is out of reach: after a start that finds no key automatically, or after `POST /system/seal`. Then every endpoint except `/healthz`, `/readyz`, `/system/seal-status` and `/system/unseal` answers 503.',
        'While the disk is full, requests that would change something get 503; reading and decrypting continue.',
        '`Kms-State` comes with every answer to a known credential: `<appliance>.<tenant>.<epoch>.<transactions>`, then `.<from>-<tag>` for each of the newest eight runs of the tenant\u2019s log, newest first. A run is what one start wrote, named by the number of transactions before it and a tag that no other history has. A client that remembers the last state it saw notices an appliance that was set back: its number is smaller, or a run that began before the remembered number is missing or new.',
        'A request may carry `Kms-Plan`, the digest of the plan that it belongs to: SHA-256 in 64 lower-case hex digits; anything else is refused with 400. Its record in the activity log then has the digest, as the caller claims it, in `props.plan`. `kms apply` sends it with every change.',
      ],
    ],
  },
  {
    id: 'versions',
    title: 'Versions',
    blocks: [
      'Paths carry no version. Answers may get more fields over time; ignore those that you do not know. The formats of hash and header carry their own version, and every version that was ever issued stays readable.',
    ],
  },
];

export const tags: readonly { readonly name: string; readonly description: string }[] = [
  {
    name: 'KeyRings',
    description: 'KeyRings of the key service: their keys, rotation, configuration, deletion and restoration.',
  },
  {
    name: 'Encryption',
    description: 'Keys, hashes and headers for encryption on the client, and what they stand for.',
  },
  {
    name: 'Assets',
    description:
      'Stored records about what was encrypted, carried in headers with a signature. Encrypt creates and updates them.',
  },
  { name: 'Asym', description: 'The asym service: KeyRings of its own, their keys and rotation.' },
  {
    name: 'Approvals',
    description: 'What needs the approval of others: rules, requests, approvals and denials, and broken glass.',
  },
  {
    name: 'Managed keys',
    description:
      'Keys that the appliance holds: made, imported, rotated, suspended, exported and deleted. Software that speaks another system\u2019s interface, such as Vault transit, reaches the same keys at an address of its own.',
  },
  {
    name: 'Key operations',
    description: 'Work with managed keys: the appliance encrypts, signs, makes MACs, wraps and derives with them.',
  },
  { name: 'Secrets', description: 'Managed keys of the type `secret` by path, with versions: what databases keep.' },
  {
    name: 'Tang',
    description:
      'Key pairs by which machines unlock their disks while they reach the appliance. Clients of Tang, such as clevis, reach `/adv` and `/rec` at an address of their own.',
  },
  { name: 'Accounts', description: 'Accounts, which own API keys.' },
  { name: 'API keys', description: 'API keys and their permission flags.' },
  {
    name: 'Proofs',
    description: 'Ways to prove an API key besides its secret, and logins of programs by them.',
  },
  { name: 'Activity', description: 'The record of every request.' },
  { name: 'Users', description: 'People who log in.' },
  { name: 'Login', description: 'Invites, logins, sessions and password resets, mostly without a credential.' },
  {
    name: 'Second factors',
    description: 'What a User has in addition to the password: authenticator apps and passkeys.',
  },
  { name: 'System', description: 'The appliance itself: health, metrics, backup, seal, and this description.' },
];
