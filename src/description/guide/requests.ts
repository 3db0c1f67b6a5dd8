// What holds for every request: tenants, ids and times, pages, bodies, errors.
import { defaultLimit, maxLimit } from '../../api/page.ts';
import { maxDepth, maxEntries, maxValues } from '../../api/values.ts';
import { maxFlags } from '../../model/flags.ts';
import type { Section } from '../prose.ts';

export const requestSections: readonly Section[] = [
  {
    id: 'overview',
    title: 'What the service does',
    blocks: [
      'The service issues the keys that files and records are encrypted with on the client. It keeps none that would open them, and it records who asked for what.',
      [
        'A KeyRing has a key pair and a list of keys, the newest of which encrypts. Each key is wrapped to the public key of its ring; only the holder of the private key can use it.',
        '`POST /ks/encrypt` gives a wrapped key, a hash and a header. The header goes in front of the ciphertext. `POST /ks/decrypt` takes it back and gives the wrapped key again.',
        'A header can carry a signed Asset: a stored record about what was encrypted. Decrypt says whether its signature holds.',
        'Users log in with a password and get an access token. Accounts own API keys. Both act by their permission flags.',
        'Every request is recorded in an activity log that proves its own completeness.',
        'The asym service has KeyRings of its own, with a smaller interface.',
      ],
    ],
  },
  {
    id: 'tenants',
    title: 'Tenants and addresses',
    blocks: [
      'One appliance serves one or several tenants. Each has an id, a name, host names, limits, and a database, keys, signing keys and an activity log of its own. They share the process and nothing else.',
      [
        'A request belongs to the tenant that lists the host in its `Host` header; the port and upper or lower case do not count.',
        'One tenant at most lists `*`: it answers every host that no other tenant lists. The first tenant, `default`, starts with `*` unless `kms init --host` names hosts.',
        'A host that no tenant answers gets 404 with a `message`.',
        "Another tenant's API key or access token is a wrong credential: 401.",
        "Another tenant's hash, header, cursor or id means nothing here: it is refused as one that cannot be decoded, or is not found.",
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
        'Where a search takes `start` and `end`, both count as within.',
        'Lists are oldest first. Searches of Assets and of activity are newest first.',
      ],
    ],
  },
  {
    id: 'pages',
    title: 'Pages',
    blocks: [
      'Lists and searches answer pages: `data` with the items and `pagination`. `cursor` and `limit` are always query parameters, for POST too; the filters of a POST search go into the body.',
      [
        `\`limit\` is ${defaultLimit} where it is absent. More than ${maxLimit.toLocaleString('en')} counts as ${maxLimit.toLocaleString('en')}. What is not an integer, or below 1, gets 400.`,
        '`nextCursor` is there only while `hasMore` is true. Send it as `cursor`, with the same filters, for the next page.',
        'A page of long items ends at about 4 MiB: it may hold fewer items than `limit` while `hasMore` is true. Only `hasMore` says that a list is at its end.',
        'A cursor is opaque and URL-safe. It belongs to the tenant, the endpoint and the filters that it came from: one that was altered, or that comes with other filters, to another endpoint or another tenant, gets 400.',
        'Every encoding is canonical. A changed spare bit is a change, in cursors as in hashes and headers.',
        'Records that are added or removed between two pages make no other record appear twice or get lost.',
      ],
    ],
  },
  {
    id: 'bodies',
    title: 'Bodies',
    blocks: [
      [
        'A POST, PUT or PATCH that takes a body needs `Content-Type: application/json`; `charset=utf-8` is fine. Without it: 400. Another `charset`, or a `Content-Encoding` such as `gzip`: 415.',
        'A request is looked at in this order: tenant, credential (401), permission flag (403), body. Without a known credential, or without a flag that does not depend on the body, it is answered before a byte of its body is read, and before `100 Continue`.',
        'Invalid JSON, a body that is no object, a required field that is missing or empty, or a wrong type gets 400. `message` names the first field, `errors` has them, 20 at most.',
        'Fields that the endpoint does not know are ignored.',
        'A body over 1 MiB gets 413; the operator can set another limit. What needs no credential takes bodies of at most 16 KiB.',
        `Lists such as \`parents\` have at most ${maxEntries.toLocaleString('en')} entries, \`flags\` at most ${maxFlags.toLocaleString('en')} names; more gets 400. No answer from 400 to 499 is longer than 64 KiB.`,
        'A boolean in a query is `true` or `false`; anything else gets 400.',
        `Free-form objects (\`props\`, \`data\` and the like) take any properties and nest at most ${maxDepth} levels and hold at most ${maxValues.toLocaleString('en')} values in all; the object itself is the first, and arrays count. Deeper gets 400. Numbers are kept as IEEE 754 doubles; an integer that one cannot keep exactly is refused.`,
        '`__proto__`, `constructor` and the like are keys like any other.',
        'An unknown path gets 404. A known path with another method gets 405, and `Allow` says which there are.',
      ],
    ],
  },
  {
    id: 'errors',
    title: 'Errors',
    blocks: [
      'An error is a JSON object with a `message` for people. Where fields of the request are wrong, `errors` says what is wrong with each. The exceptions are shown with their endpoints: invites answer a `state`, a password reset answers `{}`, and decrypt answers its result with 422.',
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
          ['404', 'no such thing, no such path, or a host that no tenant answers'],
          ['405', 'the path takes other methods; `Allow` lists them'],
          ['413', 'the body is over the limit'],
          ['415', 'the body is compressed, or not in UTF-8'],
          ['422', 'the Asset in a header does not verify'],
          ['429', 'too many failed tries; `Retry-After` says how many seconds to wait'],
          ['500', 'a failure of the server, without effect; `X-Request-Id` finds it in the log'],
          [
            '503',
            'the appliance is sealed, or cannot write right now; or a file that is needed is missing or changed, which the message names',
          ],
        ],
      },
      'What never gets so far, because it is not well-formed HTTP, is answered in the same shape: 400 for a malformed request or one without exactly one `Host`, 405 for a method that no path takes, 408 for a request that took too long to arrive, 417 for an unknown `Expect`, 431 for headers that are too large, 501 for a `Transfer-Encoding` other than `chunked`.',
      'A 5xx may be sent again. A 4xx will fail again until the request is another one; only after a 429, or a 401 for a credential that was renewed, does waiting or renewing help.',
    ],
  },
];
