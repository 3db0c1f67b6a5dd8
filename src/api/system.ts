// The appliance as a whole: liveness and readiness, the API description, its seal, its metrics and backups. Sealing,
// metrics and backups need a permission flag; the other endpoints need no credential.
import { z } from 'zod';
import { endpoint, errorBody, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import { count, epochTime, idOf, kem, pastTime, secretText, timestamp } from './values.ts';

const tag = 'System';

const healthAnswer = z.object({ status: z.enum(['ok']).meta({ description: 'the process lives' }) });

const details = {
  appliance: z
    .string()
    .exactOptional()
    .meta({
      pattern: '^[0-9a-f]{32}$',
      description: 'id of the appliance',
      examples: ['b0cb9df0c232d99d18e7a861bcc6403f'],
    }),
  epoch: z
    .int()
    .min(0)
    .exactOptional()
    .meta({
      description: 'grows with each restore from a backup, so that a copy that was set back is told apart',
      examples: [1],
    }),
  lastVerifiedBackup: z
    .object({
      at: z
        .string()
        .meta({ format: 'date-time', description: 'when it was made', examples: ['2026-01-02T03:00:00.000Z'] }),
      ageSeconds: z.number().meta({ description: 'how long ago that is', examples: [245] }),
    })
    .nullable()
    .exactOptional()
    .meta({ description: 'the newest backup that was restored on trial; null where there is none', examples: [null] }),
  shipping: z
    .object({
      ageSeconds: z
        .number()
        .nullable()
        .meta({ description: 'how far the copy is behind', examples: [2] }),
      ok: z.boolean().meta({ description: 'shipping works', examples: [true] }),
    })
    .exactOptional()
    .meta({ description: 'the copy that `kms serve --ship-to` keeps, where there is one' }),
  disk: z
    .object({
      freePercent: z
        .number()
        .min(0)
        .max(100)
        .meta({ description: 'how much of the disk is free', examples: [62] }),
      writable: z.boolean().meta({ description: 'there is room to write', examples: [true] }),
    })
    .exactOptional()
    .meta({ description: 'the disk that the data are on' }),
  activity: z
    .object({
      faulty: z
        .int()
        .min(0)
        .meta({ description: 'how many segments are missing or changed', examples: [1] }),
      segments: z.array(z.string()).meta({
        description: 'the first of them, each with what is wrong',
        examples: [['tenants/2f6c1b0a9d8e7f34/activity-000000000001.kms is missing']],
      }),
    })
    .exactOptional()
    .meta({
      description:
        'only while closed segments of an activity log are known to be missing or changed: what needs them answers 503, all else is served',
    }),
};

const readyAnswer = z.object({
  status: z.enum(['ready']).meta({ description: 'unsealed, and able to write' }),
  ...details,
});

export type Readiness = z.infer<typeof readyAnswer>;

const notReady = z.object({
  message: z.string().meta({ description: 'why not', examples: ['the appliance is sealed'] }),
  ...details,
  sealed: z.literal(true).exactOptional().meta({ description: 'only while the appliance is sealed' }),
  standby: z
    .object({
      appliance: z.string().exactOptional().meta({ description: 'id of the appliance that it follows' }),
      epoch: z.int().exactOptional().meta({ description: 'the epoch of that' }),
      behind: z
        .object({
          transactions: z.int().meta({ description: 'transactions that are shipped and not here' }),
          seconds: z.int().meta({ description: 'the time between what is shipped and what is here' }),
        })
        .nullable()
        .meta({ description: 'null where that is not known' }),
      shippedAt: z.string().nullable().meta({ description: 'of which time the newest shipped state is' }),
      provenAt: z.string().nullable().meta({ description: 'of which time the newest state is that is known to open' }),
      ok: z.boolean().meta({ description: 'the last look at what is shipped went well' }),
    })
    .exactOptional()
    .meta({ description: 'only of a standby, which serves nobody until it takes over' }),
});

export const publicEndpoints = {
  health: endpoint('getHealth', {
    tag,
    summary: 'Tell that the process lives',
    access: { kind: 'public' },
    answer: healthAnswer,
  }),
  readiness: endpoint('getReadiness', {
    tag,
    summary: 'Tell whether the appliance can serve',
    access: { kind: 'public' },
    answer: readyAnswer,
    errors: { 503: { description: 'it cannot serve, and why', schema: notReady } },
  }),
  description: endpoint('getOpenApi', {
    tag,
    summary: 'This description, as OpenAPI 3.1',
    access: { kind: 'public' },
    answer: z.record(z.string(), z.unknown()).meta({ description: 'an OpenAPI 3.1 document' }),
    errors: { 503: { description: 'the appliance is sealed', schema: errorBody } },
  }),
  docs: endpoint('getDocs', {
    tag,
    summary: 'This description, as a page to read',
    access: { kind: 'public' },
    answer: z.string(),
    text: 'text/html; charset=utf-8',
  }),
} as const;

/** Everything that an appliance reveals about its seal without a credential; nothing about the shares given. */
export const sealStatus = z
  .object({
    sealed: z.boolean().meta({ description: 'the master key is out of reach', examples: [true] }),
    kinds: z
      .array(z.string())
      .meta({ description: 'what kinds of custodians hold the master key', examples: [['shares']] }),
    threshold: z
      .int()
      .min(1)
      .exactOptional()
      .meta({ description: 'how many shares it takes, where there are shares', examples: [3] }),
    progress: z
      .int()
      .min(0)
      .exactOptional()
      .meta({ description: 'how many of them were given', examples: [1] }),
  })
  .meta({ id: 'SealStatus', description: 'whether the appliance is sealed' });
export type SealStatus = Readonly<Omit<z.output<typeof sealStatus>, 'kinds'>> & { readonly kinds: readonly string[] };

/** Exactly one of these. */
export const unsealBody = z
  .object({
    share: secretText.exactOptional().meta({ description: 'one of several shares' }),
    passphrase: secretText
      .exactOptional()
      .meta({ description: 'a passphrase', examples: ['five words that nobody guesses'] }),
    key: secretText.exactOptional().meta({ description: 'the content of a key file, or a recovery kit' }),
    retry: z
      .literal(true)
      .exactOptional()
      .meta({ description: 'look again where the key comes from by itself; on the local socket alone' }),
    reset: z
      .literal(true)
      .exactOptional()
      .meta({ description: 'forget the shares that were given; on the local socket alone' }),
  })
  .refine((body) => Object.keys(body).length === 1, 'expected one of share, passphrase, key, retry and reset')
  .meta({ minProperties: 1, maxProperties: 1 });
export type UnsealStep = Readonly<z.output<typeof unsealBody>>;

const refusals = {
  403: { description: 'it is for the local socket', schema: errorBody },
  ...tooManyTries,
};

/** Work while the appliance is sealed, except the endpoint that seals it. They belong to no tenant. */
export const sealEndpoints = {
  status: endpoint('sealStatus', {
    tag,
    summary: 'Tell whether the appliance is sealed, and how far unsealing is',
    access: { kind: 'public' },
    answer: sealStatus,
  }),
  unseal: endpoint('unseal', {
    tag,
    summary: 'Unseal the appliance, or enter one share towards it',
    access: { kind: 'public' },
    answer: sealStatus,
    errors: refusals,
  }),
  seal: endpoint('seal', {
    changes: false,
    tag,
    summary: 'Seal the appliance: its keys are forgotten, and it answers nothing until it is unsealed',
    access: { kind: 'flag', action: 'system.seal', operator: 'act' },
    answer: sealStatus,
  }),
} as const;

const backups = z
  .object({
    configured: z
      .object({
        directory: z.string().meta({ description: 'where they go', examples: ['/mnt/backup'] }),
        schedule: z.string().meta({ description: 'a cron expression, in UTC', examples: ['0 3 * * *'] }),
        keep: z
          .int()
          .meta({ description: 'how many are kept of the scheduled ones, and of those on request', examples: [7] }),
        nextAt: timestamp.nullable().meta({ description: 'when the next one is made' }),
      })
      .nullable()
      .meta({ description: 'what `kms serve --backup-to` says; null without it' }),
    running: z.boolean().meta({ description: 'one is being made, or restored on trial', examples: [false] }),
    lastVerified: z
      .object({
        at: timestamp.meta({ description: 'of when it is' }),
        file: z
          .string()
          .meta({ description: 'its path', examples: ['/mnt/backup/kms-b0cb9df0-20260102T030000Z.kms-backup'] }),
        bytes: z.int().meta({ description: 'how large it is', examples: [183296] }),
      })
      .nullable()
      .meta({ description: 'the newest that was restored on trial; null where there is none' }),
    lastFailure: z
      .object({
        at: timestamp.meta({ description: 'when that was' }),
        message: z.string().meta({ description: 'why', examples: ['/mnt/backup: there is no room on the disk'] }),
      })
      .nullable()
      .meta({ description: 'why the last one failed, since the start; null where it did not' }),
  })
  .meta({ id: 'Backups', description: 'the backups that the appliance makes by itself' });
export type Backups = z.output<typeof backups>;

const counts = z.array(count).meta({ description: 'a count for each bucket', examples: [[0, 3, 1]] });
const ringName = z.string().meta({ description: 'name in lower case', examples: ['payroll'] });
const shownName = z.string().meta({ description: 'name as it was given', examples: ['Payroll'] });
const keyid = idOf('apik').meta({ description: 'id of the API key', examples: [sample.apikeyId] });
const bytes = (description: string) => count.meta({ description, examples: [183296] });

const use = z
  .object({
    from: pastTime.meta({ description: 'start of the first bucket', examples: [sample.epochTime] }),
    bucket: count.meta({ description: 'length of a bucket in milliseconds', examples: [3600000] }),
    encrypts: counts,
    decrypts: counts,
    denials: counts,
    cut: z
      .array(
        z.object({
          name: z.enum(['encrypts', 'decrypts', 'denials']).meta({ description: 'what was not counted whole' }),
          since: pastTime.meta({ description: 'it is counted from here', examples: [sample.epochTime] }),
        }),
      )
      .meta({ description: 'counts of which only the newest records were counted', examples: [[]] }),
    deniedLastHour: count.meta({ description: 'requests denied in the last hour', examples: [2] }),
    deniedBefore: count.meta({ description: 'requests denied in the rest of the day before', examples: [30] }),
    countedBefore: count.meta({
      description: 'how much of that rest was counted, in milliseconds',
      examples: [82800000],
    }),
  })
  .meta({ description: 'encrypts, decrypts and denials over time; with `activity.read`' });

const nearRotation = z
  .object({
    name: ringName,
    displayName: shownName,
    kem,
    offlineDecrypt: z.boolean().meta({ description: 'its private key alone opens files', examples: [false] }),
    encrypts: count.meta({ description: 'how many its active key has served', examples: [4711] }),
    maxEncryptCount: count.meta({ description: 'after how many it is rotated', examples: [4294967296] }),
    activeSince: pastTime.meta({ description: 'when its active key was made', examples: [sample.epochTime] }),
    rotateAfter: count.nullable().meta({ description: 'age in seconds at which it is rotated', examples: [7776000] }),
  })
  .meta({ id: 'RingNearRotation', description: 'how far a KeyRing is from its next rotation' });

const overview = z
  .object({
    readiness: z
      .object({
        ready: z.boolean().meta({ description: 'it serves', examples: [true] }),
        message: z
          .string()
          .exactOptional()
          .meta({ description: 'why not', examples: ['the disk is nearly full'] }),
        lastVerifiedBackup: details.lastVerifiedBackup,
        shipping: details.shipping,
        activity: details.activity,
      })
      .meta({ description: 'what `/readyz` says' }),
    use: use.exactOptional(),
    keyrings: z
      .object({
        rings: z.array(nearRotation).meta({ description: 'those that the caller may read' }),
        more: z.boolean().meta({ description: 'there are others that were not looked at', examples: [false] }),
      })
      .exactOptional()
      .meta({ description: 'how near the first KeyRings are to their rotation; with `keyring.list`' }),
    apikeys: z
      .array(
        z
          .object({
            keyid,
            name: z.string().meta({ description: 'what people call it; may be empty', examples: ['nightly batch'] }),
            expiresAt: epochTime.meta({ description: 'when it ends', examples: [1798761600000] }),
          })
          .meta({ id: 'EndingApiKey', description: 'an API key that ends soon, or ended lately' }),
      )
      .exactOptional()
      .meta({ description: 'active API keys that end within 14 days or ended in the last 3; with `apikey.read`' }),
    backups: backups.exactOptional(),
    log: z
      .object({
        logBytes: bytes('log since the last checkpoint'),
        snapshotBytes: bytes('the snapshot'),
        lastCheckpointAt: pastTime
          .nullable()
          .meta({ description: 'when the snapshot was made', examples: [sample.epochTime] }),
        activityRecords: count.meta({ description: 'records of activity that are kept', examples: [4711] }),
        activityBytes: bytes('closed files of the activity log'),
        diskFreeBytes: bytes('free on the disk').exactOptional(),
        writesRefused: z.boolean().meta({ description: 'for want of room on the disk', examples: [false] }),
        failures: count.meta({ description: 'writes and checkpoints that failed', examples: [0] }),
      })
      .exactOptional()
      .meta({ description: 'the state of the files; with `system.metrics` in the operator tenant, as `backups`' }),
  })
  .meta({ id: 'Overview', description: 'how the appliance is, as far as the flags of the caller go' });
export type Overview = z.output<typeof overview>;

const names = z
  .object({
    keyrings: z
      .array(
        z
          .object({
            id: idOf('ring').meta({ description: 'its id', examples: [sample.ringId] }),
            name: ringName,
            displayName: shownName,
            kem,
            offlineDecrypt: z.boolean().meta({ description: 'its private key alone opens files', examples: [false] }),
          })
          .meta({ id: 'KeyRingName', description: 'a KeyRing' }),
      )
      .exactOptional()
      .meta({ description: 'with `keyring.list`' }),
    transitRings: z
      .array(
        z
          .object({
            name: ringName,
            displayName: shownName,
            type: z.string().meta({ description: 'type of its keys', examples: ['ed25519'] }),
          })
          .meta({ id: 'TransitRingName', description: 'a transit ring' }),
      )
      .exactOptional()
      .meta({ description: 'with `transit.list`' }),
    apikeys: z
      .array(
        z
          .object({
            keyid,
            name: z.string().meta({ description: 'what people call it; may be empty', examples: ['nightly batch'] }),
            active: z.boolean().meta({ description: '`false`: the key is refused', examples: [true] }),
          })
          .meta({ id: 'ApiKeyName', description: 'an API key' }),
      )
      .exactOptional()
      .meta({ description: 'with `apikey.read`' }),
    users: z
      .array(
        z
          .object({
            id: idOf('user').meta({ description: 'its id', examples: [sample.userId] }),
            username: z.string().meta({ description: 'name to log in with', examples: ['ada'] }),
            displayName: z.string().meta({ description: 'name to show', examples: ['Ada Lovelace'] }),
          })
          .meta({ id: 'UserName', description: 'a User' }),
      )
      .exactOptional()
      .meta({ description: 'with `user.read`' }),
    accounts: z
      .array(
        z
          .object({
            id: idOf('acct').meta({ description: 'its id', examples: [sample.accountId] }),
            uid: z.string().meta({ description: 'its UID', examples: ['billing'] }),
          })
          .meta({ id: 'AccountName', description: 'an Account' }),
      )
      .exactOptional()
      .meta({ description: 'with `account.read`' }),
  })
  .meta({ id: 'Names', description: 'names of what the caller may list, the oldest 5,000 of each kind' });
export type Names = z.output<typeof names>;

/** Fields that change by themselves, by the age of things and by the records of the polls. */
const apart = [
  'ageSeconds',
  'countedBefore',
  'logBytes',
  'snapshotBytes',
  'lastCheckpointAt',
  'activityRecords',
  'activityBytes',
  'diskFreeBytes',
];

export const systemEndpoints = [
  endpoint('getOverview', {
    tag,
    summary: 'Tell how the appliance is and how it is used, in one answer',
    access: { kind: 'credential', action: 'system.overview' },
    query: z.object({
      range: z
        .enum(['hour', 'day', 'week'])
        .exactOptional()
        .meta({ description: 'what time the counts cover; the last day, where absent', examples: ['day'] }),
    }),
    answer: overview,
    watchable: { apart },
  }),
  endpoint('getNames', {
    tag,
    summary: 'List the names of all that the caller may list',
    access: { kind: 'credential', action: 'system.names' },
    answer: names,
    watchable: { apart: [] },
  }),
  endpoint('createBackup', {
    changes: false,
    tag,
    summary: 'Make a backup of the whole appliance, sealed, while it serves',
    access: { kind: 'flag', action: 'system.backup', operator: 'act' },
    answer: z.unknown(),
    binary: true,
  }),
  endpoint('getBackups', {
    tag,
    summary: 'Tell of the backups that the appliance makes by itself',
    access: { kind: 'flag', action: 'system.metrics', operator: 'look' },
    answer: backups,
  }),
  endpoint('startBackup', {
    tag,
    summary: 'Make a backup into the configured directory now',
    access: { kind: 'flag', action: 'system.backup', operator: 'act' },
    answer: backups,
  }),
  endpoint('getMetrics', {
    tag,
    summary: "The tenant's and the process's numbers, in Prometheus' text format",
    access: { kind: 'flag', action: 'system.metrics', operator: 'look' },
    answer: z.string(),
    text: 'text/plain; version=0.0.4; charset=utf-8',
  }),
] as const;
