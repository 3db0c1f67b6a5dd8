// Users, Accounts, API keys, the activity log, limits, and the appliance itself.
import type { Section } from '../prose.ts';

export const recordSections: readonly Section[] = [
  {
    id: 'people',
    title: 'Users, Accounts and API keys',
    blocks: [
      [
        'User names and e-mail addresses are unique, and looked up, without regard to case. A taken one is 400 with `errors.username` or `errors.email`. The `uid` of an Account is unique too, and case counts.',
        'A User has `flags`, which are optional when it is made or invited; who may update Users can change them.',
        'An invite makes the User at once, but it cannot log in before the invite is completed. Inviting a User again who has not completed replaces the token. `loginUrl` is `{base_url}/console/invite?token=…`.',
        'PATCH replaces each field that it names, `props` and `flags` as a whole, and keeps the others.',
        'An unknown User, Account, API key or activity is 404. Deleting an Account deletes its API keys.',
        'Updating an API key: with `op` `merge`, what is given is set, deep in `props`; with `replace`, what is given takes the place of the whole field; with `delete`, the named entries of `flags` and `props` go. `active` and `references` are set where they are given, whatever `op` says.',
        '`PUT /auth/apikeyid` answers `keyid`, `op`, `active`, `references`, `flags` and `props`.',
        '`POST /auth/validate`: `valid` means that the key exists in this tenant and is active. With `activity`, that record is stored for the validated key; `validAction` is what `valid` says, and `createdAt` is now, where they are absent. Its `action` is a word of yours of at most 256 characters, none of the names that the service records itself; its `ringname` has the form of one; its `props` are at most 64 KiB of JSON. `reporter` in the record is the id of who sent it.',
      ],
    ],
  },
  {
    id: 'activity',
    title: 'Activity',
    blocks: [
      [
        'Every request to a known path with a known credential, a disabled or expired one too, is recorded before it is answered, granted or denied. If the record cannot be made durable, the request fails with 500 and has no effect. A denied request changes nothing else.',
        "Backups, sealing, unsealing and changes of the master key concern the whole appliance: each tenant has a record of them, with `props.by` = `operator`. The `keyid` of other tenants' records is `operator`, `local` or `network`.",
        '`action` is the flag without the name of the ring (`keyring.encrypt`, `user.invite`), or `session.refresh`, `session.end`, `system.seal`; `none` where the path does not take the method. `ringname` says which ring. With an access token, `keyid` is the id of the User.',
        '`validAction` is the verdict of authorization, whatever came of the request afterwards; `status` is what came of it.',
        '`props` is free-form, for records that programs store with `POST /auth/validate`; those have `reporter`, too: who stored them. Records of the service itself have none. A search for `props` matches as the one for the `data` of Assets does.',
        'The records of a tenant form a hash chain. `kms activity verify` proves that none was changed, dropped or moved.',
      ],
    ],
  },
  {
    id: 'limits',
    title: 'Limits',
    blocks: [
      'A tenant can have limits on KeyRings, keys of each ring, Users, Accounts, API keys, Assets, and versions of Assets: each stored version of each Asset counts. There are none until the operator sets them with `kms tenant limits`. A request that would go beyond one gets 403 with a `message` that says which.',
      'Where KeyRings are limited, so are the deleted ones that can still be restored: to ten times as many, and at least 100. Beyond that nobody makes another KeyRing until the 30 days of some are over.',
      'A User has at most 1,000 sessions at once: one more ends the oldest.',
    ],
  },
  {
    id: 'appliance',
    title: "The appliance's own endpoints",
    blocks: [
      [
        '`GET /healthz` answers 200 while the process lives. `GET /readyz` answers 200 while the appliance is unsealed and can write, else 503 with the reason.',
        "`GET /metrics` gives Prometheus' text format. `POST /system/backup` gives a backup of the whole appliance, sealed, as `application/octet-stream`.",
        'The appliance is sealed while its master key is out of reach: after a start whose key does not come by itself, or after `POST /system/seal`. Then every endpoint but `/healthz`, `/readyz`, `/system/seal-status` and `/system/unseal` answers 503.',
        'While the disk is full, requests that would change something get 503; reading and decrypting go on.',
        '`Kms-State` comes with every answer to a known credential: `<appliance>.<tenant>.<epoch>.<transactions>`, then `.<from>-<tag>` for each of the newest eight runs of the tenant\u2019s log, the newest first. A run is what one start wrote: how many transactions were before it, and a tag that no other history has. A client that remembers the last state that it saw notices an appliance that was set back: its number is smaller, or a run that began before the remembered number is missing or new.',
      ],
    ],
  },
  {
    id: 'versions',
    title: 'Versions',
    blocks: [
      'Paths carry no version. Answers may get more fields with time; ignore those that you do not know. The formats of hash and header carry a version of their own, and every version that was ever given out stays readable.',
    ],
  },
];
