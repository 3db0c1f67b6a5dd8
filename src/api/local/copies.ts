// Local endpoints for copies of an appliance: backups, shipping, and standbys.
import { z } from 'zod';
import { endpoint, ofAppliance } from '../endpoint.ts';
import type { Sent } from '../endpoints.ts';
import { only } from '../values.ts';

const epochMilliseconds = z.number();

const verifiedBackup = z.object({
  file: z.string().exactOptional().meta({ description: 'absent where the backup was thrown away' }),
  bytes: z.int(),
  madeAt: z.string(),
  verifiedAt: z.string(),
  stores: z.int(),
  transactions: z.int(),
  activities: z.int(),
  rows: z.int(),
  lacks: z.array(z.string()).meta({ description: 'segments of the activity log, each with what is wrong with it' }),
});

export const copiesStatus = z.object({
  epoch: z.object({
    number: z.int().meta({ description: 'grows with each restore' }),
    restoredAt: z.string().exactOptional(),
    madeAt: z.string().exactOptional(),
  }),
  lastVerified: verifiedBackup.optional().meta({ description: 'the last backup that was kept and found to restore' }),
  backupAge: z.number().optional().meta({ description: 'seconds' }),
  shipping: z
    .object({
      to: z.string(),
      arrivedAt: epochMilliseconds.optional(),
      error: z.string().exactOptional(),
      laterEpoch: z.int().exactOptional().meta({ description: 'of a later life of it that ships there too' }),
    })
    .optional(),
  shippingAge: z.number().optional().meta({ description: 'seconds' }),
});

const reached = z
  .object({ at: z.string().meta({ description: 'everything was committed by then' }), transactions: z.int() })
  .nullable();

export const standbyStatus = z.object({
  version: z.string(),
  sealed: z.literal(true),
  standby: z.object({
    from: z.string().meta({ description: 'what it follows' }),
    appliance: z.string().exactOptional(),
    epoch: z.int().exactOptional(),
    shipped: reached.meta({ description: 'what lies there; null where the last look could not tell' }),
    copied: reached.meta({ description: 'what of it is here' }),
    proven: reached.meta({ description: 'what of that is known to open' }),
    behind: z.object({ transactions: z.int(), seconds: z.int() }).nullable(),
    hasKey: z.boolean().meta({ description: 'without the master key nothing is proven' }),
    problem: z.string().exactOptional().meta({ description: 'why the last look took nothing' }),
    advice: z.string().exactOptional().meta({ description: 'what to do about the problem; absent where it passes' }),
  }),
});
export type StandbyAnswer = Sent<z.output<typeof standbyStatus>>;

const takenOver = z.object({
  data: z.string(),
  applianceId: z.string(),
  epoch: z.int(),
  madeAt: z.string().meta({ description: 'of which time the state is' }),
  isComplete: z.boolean().meta({ description: 'the one before said that it stopped, and that nothing is missing' }),
  stores: z.int(),
  transactions: z.int(),
  activities: z.int(),
  lacks: z.array(z.string()).meta({ description: 'segments of the activity log, each with what is wrong with it' }),
  heads: z
    .record(z.string(), z.object({ seq: z.int(), hash: z.string() }))
    .meta({ description: 'the end of the activity log of each store, before the new epoch' }),
  keyFile: z.string().exactOptional(),
  keyFileMade: z.boolean(),
});
export type TakenOverAnswer = Sent<z.output<typeof takenOver>>;

export const copyEndpoints = [
  endpoint('streamBackup', {
    changes: false,
    summary: 'Make a backup of the whole appliance, sealed, while it serves',
    ...ofAppliance,
    answer: z.unknown(),
    binary: true,
  }),
  endpoint('drillBackup', {
    changes: false,
    summary: 'Make a backup, restore it on trial, and throw both away',
    ...ofAppliance,
    answer: verifiedBackup,
  }),
  endpoint('readCopies', {
    summary: 'Tell of the last verified backup and of shipping',
    ...ofAppliance,
    answer: copiesStatus,
  }),
  endpoint('promoteStandby', {
    changes: false,
    summary: 'Have a standby take over from the appliance that it follows',
    ...ofAppliance,
    body: only({
      wait: z.int().min(0).exactOptional().meta({ description: 'milliseconds' }),
      fence: z.boolean().exactOptional(),
      acceptOlder: z.boolean().exactOptional(),
    }),
    answer: takenOver,
  }),
] as const;
