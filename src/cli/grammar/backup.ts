// The part of the grammar about copies of the appliance: making them, proving them, coming back from them.
import type { GrammarCommand } from '../grammar-command.ts';

export function backups(kms: GrammarCommand): void {
  const backup = kms.group('backup', 'copies of the whole appliance, sealed: they may lie anywhere');
  backup.leaf(
    'create <OUT>',
    'make a backup, with the server running or not; nothing waits for it',
    ['kms backup create /mnt/backup/kms.kms-backup', 'kms backup create - | ssh host "cat > kms.kms-backup"'],
    () => import('../commands/backup/create.ts'),
  );
  backup.leaf(
    'verify <FILE>',
    'prove that a backup restores, without restoring it; without the master key compare digests alone',
    ['kms backup verify kms.kms-backup', 'kms backup verify kms.kms-backup --key-file kms-data.master.key'],
    () => import('../commands/backup/verify.ts'),
  );
  kms
    .leaf(
      'restore <FROM>',
      'put an appliance back into a new data directory: from a backup file, or a directory that was shipped to',
      [
        'kms restore kms.kms-backup --data ./kms-restored',
        'kms restore /mnt/shipped --data ./kms-restored --to 2026-01-02T03:04:05Z',
      ],
      () => import('../commands/restore.ts'),
    )
    .option('--to <TIME>', 'of a directory that was shipped to: as it was at this time (default: the newest)');
  kms.leaf(
    'drill',
    'make a backup, restore it beside the appliance, check everything in it, and throw both away',
    ['kms drill', 'kms drill --json'],
    () => import('../commands/drill.ts'),
  );
}

/** Options of `serve`. */
export function copyOptions(serve: GrammarCommand): void {
  serve
    .option('--backup-to <DIR>', 'make backups into this directory, each restored on trial before it counts')
    .option('--backup-schedule <CRON>', 'when, as a cron expression in UTC (default: "0 3 * * *")')
    .option('--backup-keep <N>', 'how many of them to keep (default: 7)')
    .option('--ship-to <DIR>', 'ship every change to this directory, on another disk')
    .option('--ship-every <TIME>', 'how often: what at most is lost with the first disk (default: 5s)')
    .option('--ship-window <TIME>', 'for how long earlier states stay restorable from there (default: 1d)');
}
