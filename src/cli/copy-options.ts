// The options of `serve` about copies of the appliance: scheduled backups, and shipping.
import { KmsError } from '../errors.ts';
import type { CopySettings } from '../server/backup/service.ts';
import type { Cli } from './cli.ts';
import { duration } from './duration.ts';

export async function copySettings(cli: Cli): Promise<CopySettings> {
  return { scheduled: await scheduled(cli), shipping: await shipping(cli) };
}

async function scheduled(cli: Cli): Promise<CopySettings['scheduled']> {
  const to = cli.path('--backup-to');
  if (to === undefined) {
    refuse(cli, ['--backup-schedule', '--backup-keep'], '--backup-to');
    return undefined;
  }
  const { checkSchedule, defaultKeep, defaultSchedule } = await import('../server/backup/schedule.ts');
  const schedule = cli.text('--backup-schedule') ?? defaultSchedule;
  checkSchedule(schedule);
  const keep = cli.integer('--backup-keep') ?? defaultKeep;
  if (keep < 1) throw new KmsError('usage', '--backup-keep: expected at least 1', { hint: cli.seeHelp });
  return { to, schedule, keep };
}

async function shipping(cli: Cli): Promise<CopySettings['shipping']> {
  const to = cli.path('--ship-to');
  if (to === undefined) {
    refuse(cli, ['--ship-every', '--ship-window'], '--ship-to');
    return undefined;
  }
  const { defaultShipEvery, defaultShipWindow } = await import('../server/backup/shipping.ts');
  return {
    to,
    every: duration(cli, '--ship-every') ?? defaultShipEvery,
    window: duration(cli, '--ship-window') ?? defaultShipWindow,
  };
}

function refuse(cli: Cli, options: readonly string[], needed: string): void {
  for (const option of options) {
    if (cli.isTyped(option)) throw new KmsError('usage', `${option} goes with ${needed}`, { hint: cli.seeHelp });
  }
}
