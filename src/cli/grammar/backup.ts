// The commands about copies of the whole appliance: `kms backup …`, `kms restore` and `kms drill`.
import { argument, command, time } from './declaration.ts';

export const backup = {
  create: command(
    'create',
    'make a backup, with or without a running server; no request waits for it',
    ['kms backup create /mnt/backup/kms.kms-backup', 'kms backup create - | ssh host "cat > kms.kms-backup"'],
    {
      '<OUT>': argument('file'),
    },
  ),
  verify: command(
    'verify',
    'prove that a backup restores, without restoring it; without the master key, only compare digests',
    ['kms backup verify kms.kms-backup', 'kms backup verify kms.kms-backup --key-file kms-data.master.key'],
    {
      '<FILE>': argument('file'),
    },
  ),
};

export const copies = {
  restore: command(
    'restore',
    'restore an appliance into a new data directory, from a backup file or a directory that was shipped to',
    [
      'kms restore kms.kms-backup --data ./kms-restored',
      'kms restore /mnt/shipped --data ./kms-restored --to 2026-01-02T03:04:05Z',
    ],
    {
      '<FROM>': argument('file'),
      '--to': time('TIME', 'for a directory that was shipped to: the state at this time (default: the newest)'),
    },
  ),
  drill: command('drill', 'make a backup, restore it beside the appliance, check everything in it, and delete both', [
    'kms drill',
    'kms drill --json',
  ]),
};
