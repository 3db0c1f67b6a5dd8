// Backups of the whole appliance: made on request, and those that it makes by itself.
import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { timestamp } from './values.ts';

const tag = 'System';

export const backups = z
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

export const backupEndpoints = [
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
] as const;
