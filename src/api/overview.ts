// Answers that console and command line fetch in place of many: how the appliance is and how it is used, and the names
// of all that the caller may list.
import { z } from 'zod';
import { backups } from './backups.ts';
import { endpoint } from './endpoint.ts';
import { sample } from './example-values.ts';
import { details } from './readiness.ts';
import { callerId, count, epochTime, idOf, kem, pastTime, shownFlags, trueParam } from './values.ts';

const tag = 'System';

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
    tenant: z.string().meta({ description: 'name of the tenant', examples: ['default'] }),
    readiness: z
      .object({
        ready: z.boolean().meta({ description: 'it serves', examples: [true] }),
        message: z
          .string()
          .exactOptional()
          .meta({ description: 'why not', examples: ['the disk is nearly full'] }),
        appliance: details.appliance,
        label: details.label,
        lastVerifiedBackup: details.lastVerifiedBackup,
        shipping: details.shipping,
        activity: details.activity,
      })
      .meta({ description: 'what `/readyz` says' }),
    flags: shownFlags.exactOptional().meta({ description: 'what the caller may do, if that was asked for' }),
    caller: callerId.exactOptional().meta({
      description: 'id of the API key or User that asks, or `local`, if the flags were asked for',
      examples: [sample.apikeyId],
    }),
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
    proofs: z
      .array(
        z
          .object({
            keyid,
            name: z.string().meta({ description: 'what people call the API key; may be empty', examples: ['till'] }),
            proof: idOf('proof').meta({ description: 'id of the proof', examples: [sample.proofId] }),
            endsAt: epochTime.meta({
              description: 'when the certificate or authority ends',
              examples: [1798761600000],
            }),
          })
          .meta({ id: 'EndingProof', description: 'a proof by certificates that ends soon, or ended lately' }),
      )
      .exactOptional()
      .meta({
        description:
          'active proofs by client certificates that end within 14 days or ended in the last 3, the first 100; with `apikey.read`',
      }),
    users: count.exactOptional().meta({ description: 'how many Users there are; with `user.read`', examples: [3] }),
    secondFactor: z
      .boolean()
      .exactOptional()
      .meta({ description: 'whether the caller has a second factor; absent for API keys', examples: [true] }),
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
    managedKeys: z
      .array(
        z
          .object({
            name: ringName,
            displayName: shownName,
            type: z.string().meta({ description: 'type of its keys', examples: ['ed25519'] }),
          })
          .meta({ id: 'ManagedKeyName', description: 'a managed key' }),
      )
      .exactOptional()
      .meta({ description: 'with `key.list`' }),
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
            notes: z.string().meta({ description: 'the first 200 characters of its notes', examples: ['invoices'] }),
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

export const overviewEndpoints = [
  endpoint('getOverview', {
    tag,
    summary: 'Tell how the appliance is and how it is used, in one answer',
    access: { kind: 'credential', action: 'system.overview' },
    query: z.object({
      range: z
        .enum(['hour', 'day', 'week'])
        .exactOptional()
        .meta({ description: 'what time the counts cover; the last day, where absent', examples: ['day'] }),
      flags: trueParam.exactOptional().meta({ description: "`true`: with the caller's permission flags" }),
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
] as const;
