// Notes on the endpoints of Accounts, API keys and the activity log.
import type { accountEndpoints } from '../../api/accounts.ts';
import type { activityEndpoints } from '../../api/activity.ts';
import type { apikeyEndpoints } from '../../api/apikeys.ts';
import { sample } from '../../api/example-values.ts';
import type { Note } from '../prose.ts';

const noAccount = { message: 'there is no such account' };
const noKey = { message: 'there is no such API key' };
const uidTaken = { field: 'uid', message: 'another account has this uid' };
const noAddress = {
  field: 'allowedAddresses.0',
  message: 'expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24',
};
const cannotGrant = { message: 'the permission flag keyring.payroll.encrypt is missing, so it cannot be granted' };
const stronger = { message: 'the target has the permission flag keyring.payroll.encrypt, which the caller lacks' };
const lastHolder = {
  message:
    'no active API key without an end or a limit to addresses and no user who can log in would hold * any more: give it to another first, or use kms on the appliance itself',
};
const segmentNote =
  'If it needs a file of old records that is missing or changed, the answer is 503 with the name of the file. Other requests are not affected.';
const account = { id: { description: 'id of the Account, or its UID with `uid=true`', example: sample.accountId } };

export const accountNotes: Readonly<Record<(typeof accountEndpoints)[number]['id'], Note>> = {
  createAccount: {
    description: ['Creates an Account under a `uid` of your choice.'],
    problems: { 400: [uidTaken] },
    limits: ['50 accounts'],
  },
  listAccounts: { description: ['Lists the Accounts.'] },
  getAccount: {
    description: [
      'Returns one Account. With `apikeys=true`, its API keys come along for callers with `apikey.read`, as from `GET /auth/accounts/{accountId}/apikeys`. Both are recorded as one `account.read`.',
    ],
    params: account,
    problems: { 404: [noAccount] },
  },
  updateAccount: {
    description: ['Replaces each given field as a whole, including `props`, and keeps the others.'],
    params: { id: { description: 'id of the Account', example: sample.accountId } },
    problems: { 400: [uidTaken], 404: [noAccount] },
  },
  deleteAccount: {
    description: [
      'Deletes an Account and all of its API keys, none of which may have a flag that the caller lacks, and returns it once more.',
    ],
    params: account,
    problems: { 400: [lastHolder], 403: [stronger], 404: [noAccount] },
  },
  listAccountApiKeys: {
    description: ['Lists the API keys of an Account, without their secrets.'],
    params: { accountId: { description: 'id of the Account, or its UID with `uid=true`', example: sample.accountId } },
    problems: { 404: [noAccount] },
  },
};

export const apikeyNotes: Readonly<Record<(typeof apikeyEndpoints)[number]['id'], Note>> = {
  validateApiKey: {
    description: [
      'For programs that accept API keys of this tenant. `valid` is true for a key that exists, is active and has not expired. `allowedAddresses` does not count here, because the request comes from your program. With `activity`, that record is stored for the key, whether it is active or not; for an unknown key nothing is stored. `reporter` in the record is the id of the caller.',
    ],
    body: {
      key: sample.apikey,
      activity: { action: 'invoice.print', props: { invoice: 17 }, ringname: 'payroll', validAction: true },
    },
    problems: {
      400: [
        { field: 'activity.action', message: 'is a name that the service records itself; use a word of your own' },
        { field: 'activity.ringname', message: 'expected the name of a keyring' },
      ],
    },
  },
  listApiKeys: { description: ['Lists all API keys, without their secrets.'] },
  createApiKey: {
    description: [
      'Creates an API key. `key` in the answer is its secret, which is shown only once.',
      'With `active: false` the key is refused until it is made active. With `unique: true` it is made only if no other key has its name, which is then required.',
      'Nobody can give a key a flag that they do not have. With an access token, the key belongs to that User, who can own at most 10,000.',
      'Addresses and blocks are stored once each and in one form: host bits are zero, IPv6 is written as in RFC 5952, and an IPv4-mapped IPv6 address becomes the IPv4 address.',
    ],
    problems: { 400: [noAddress], 403: [cannotGrant], 404: [noAccount] },
    limits: ['200 API keys'],
  },
  updateApiKeyBySecret: {
    description: ['Changes the API key that has this secret, so anyone who finds a key can disable it.'],
    problems: {
      400: [{ field: 'op', message: "must be 'delete' or 'merge' or 'replace'" }, lastHolder],
      403: [cannotGrant, stronger],
      404: [noKey, noAccount],
    },
  },
  updateApiKey: {
    description: [
      'Changes the API key that has this id. `op` applies to `flags` and `props`; other fields are set if given, whatever `op` is.',
      '`owner` hands the key to another User: from then on it is in the `keys` of that User, and ends when that User is deleted. The caller must have every flag of the key and of both Users.',
    ],
    problems: {
      400: [{ field: 'op', message: "must be 'delete' or 'merge' or 'replace'" }, noAddress, lastHolder],
      403: [cannotGrant, stronger],
      404: [noKey, noAccount, { message: 'there is no such user' }],
    },
  },
  getApiKey: {
    description: [
      'Returns an API key, without its secret. With `proofs=true`, its proofs come along, as from `GET /auth/apikey/{keyid}/proofs`.',
    ],
    problems: { 404: [noKey] },
  },
  deleteApiKey: {
    description: [
      'Deletes the API key that has this secret. Here the path takes the secret, not the id; neither the log nor the activity contains it.',
    ],
    params: { apikeyid: { description: 'the secret of the API key', example: sample.apikey } },
    problems: { 400: [lastHolder], 403: [stronger], 404: [noKey] },
  },
  deleteApiKeyById: {
    description: [
      'Deletes the API key that has this id, by the same rules as by its secret. `lastUsedAt` of the key says whether a program still uses it.',
    ],
    params: { keyid: { description: 'id of the API key', example: sample.apikeyId } },
    problems: { 400: [lastHolder], 403: [stronger], 404: [noKey] },
  },
  getApiKeyProps: {
    description: ['Returns an API key with its `props`, without its secret, like reading the key.'],
    problems: { 404: [noKey] },
  },
  searchKeyringApiKeys: {
    description: [
      'Lists the API keys that use a KeyRing of the key service: those with a true flag that names it, and with `wildcard=true` also those that match by a wildcard.',
      'Callers who may not read the ring do not learn whether it exists: its name is searched for as given, its id is refused.',
    ],
    params: { keyringname: { description: 'name of the KeyRing; with `id=true` its id', example: 'payroll' } },
    problems: { 404: [{ message: 'there is no such keyring' }] },
  },
};

export const activityNotes: Readonly<Record<(typeof activityEndpoints)[number]['id'], Note>> = {
  searchActivity: {
    description: [
      'Finds records that match all given filters, newest first. `{}` finds all. `object`, `granted` and `revoked` search what the records of the service itself say was done; `granted: true` finds who granted permissions, to whom, when and from where.',
      'The search itself is recorded as `activity.read`. `exclude` leaves such records out: `{"keyid": …, "action": "activity.read"}` those of one key or User. Only records that match everything in it are left out. `reads: false` leaves out all granted reads, by anybody.',
      segmentNote,
    ],
    body: { action: 'keyring.encrypt', ring: 'payroll', start: 1767225600000, end: 1769904000000, valid: true },
    problems: {
      400: [
        { field: 'start', message: 'expected a number, got a string' },
        { ...noAddress, field: 'address' },
        { field: 'granted', message: 'expected true or the name of a flag' },
        { field: 'exclude', message: 'expected keyid, action or both' },
      ],
    },
  },
  getActivityHead: {
    description: [
      'Returns the number and the hash of the last record, signed by the tenant. If you keep it where the operators of the appliance cannot change it, you can detect later whether anything up to there was changed, removed or inserted. `docs/activity-export.md` of the source describes the signature.',
      'With `postQuantum=true`, the answer also has `mlDsaPublicKey` and `mlDsaSignature`, for heads that must still convince somebody once quantum computers can forge Ed25519. The two add 7 KB.',
      segmentNote,
    ],
  },
  exportActivity: {
    description: [
      'Returns every record, oldest first, one per line, each with its hash. `kms activity verify --file` and the programs in `docs/verify-activity` of the source verify them without this service. The last record is that of the export itself. With `since`, it returns only the records after that head; a head that is not of this tenant is refused.',
      'The lines are generated while the client reads them. An answer that breaks off is incomplete.',
      'If the operator keeps activity for a limited time, an extra first line is the signed head of the last dropped record: the first record continues from its hash.',
      segmentNote,
    ],
    body: {},
    answer: `{"hash":"${sample.chainHash}","action":"keyring.decrypt","createdAt":1700000000001,"id":"act_00000000010000000000000000","keyid":"apik_1","ringname":"ring-1","seq":1,"status":200,"validAction":true}`,
    problems: {
      400: [
        {
          field: 'since',
          message: 'expected a head of the format kms-activity-head-1, as `kms activity head --json` prints it',
        },
        { message: 'record 17, which was anchored, is another one now or was dropped: see `kms activity verify`' },
      ],
      429: [{ message: 'as many exports as may be are under way; try again when one has ended' }],
    },
  },
  getActivity: {
    description: ['Returns one record.', segmentNote],
    params: { id: { description: 'id of the record', example: sample.activityId } },
    problems: { 404: [{ message: 'no such activity' }] },
  },
};
