// Whether the process lives and can serve, and the description of the interface itself: what everybody may ask, without
// a credential.
import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { errorBody } from './error.ts';

const healthAnswer = z.object({ status: z.enum(['ok']).meta({ description: 'the process lives' }) });

const details = {
  appliance: z
    .string()
    .exactOptional()
    .meta({ description: 'id of the appliance', examples: ['b0cb9df0c232d99d18e7a861bcc6403f'] }),
  epoch: z
    .int()
    .exactOptional()
    .meta({
      description: 'grows with each restore from a backup, so that a copy that was set back is told apart',
      examples: [1],
    }),
  lastVerifiedBackup: z
    .object({
      at: z.string().meta({ description: 'when it was made', examples: ['2026-01-02T03:00:00.000Z'] }),
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
      freePercent: z.number().meta({ description: 'how much of the disk is free', examples: [62] }),
      writable: z.boolean().meta({ description: 'there is room to write', examples: [true] }),
    })
    .exactOptional()
    .meta({ description: 'the disk that the data are on' }),
  activity: z
    .object({
      faulty: z.int().meta({ description: 'how many segments are missing or changed', examples: [1] }),
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
});

const tag = 'System';

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
