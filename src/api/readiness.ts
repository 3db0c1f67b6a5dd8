// Whether the appliance serves, with the reason where it does not.
import { z } from 'zod';
import { labelColours } from '../model/label.ts';

/** Also part of the overview. */
export const details = {
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
  label: z
    .object({
      text: z.string().meta({ description: 'at most 24 characters', examples: ['prod'] }),
      colour: z
        .enum(labelColours)
        .exactOptional()
        .meta({ description: 'grey, where absent', examples: ['red'] }),
    })
    .exactOptional()
    .meta({ description: 'the name that `kms serve --label` gives the appliance, for people' }),
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
  brokenGlass: z
    .int()
    .min(1)
    .exactOptional()
    .meta({
      description: 'how many operations were done without the approval that they needed, and are not acknowledged',
      examples: [1],
    }),
};

export const readyAnswer = z.object({
  status: z.enum(['ready']).meta({ description: 'unsealed, and able to write' }),
  ...details,
});

export type Readiness = z.infer<typeof readyAnswer>;

export const notReady = z.object({
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
    .meta({ description: 'only of a standby, which serves no client until it takes over' }),
});
