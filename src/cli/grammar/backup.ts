// The commands about copies of the whole appliance: `kms backup …`, `kms restore`, `kms move` and `kms drill`.
import { argument, command, directory, duration, time, toggle, typedPath } from './declaration.ts';

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
    'restore an appliance from a backup or a shipped directory, into a new data directory or a database',
    [
      'kms restore kms.kms-backup --data ./kms-restored',
      'kms restore /mnt/shipped --data ./kms-restored --to 2026-01-02T03:04:05Z',
    ],
    {
      '<FROM>': argument('file'),
      '--to': time(
        'TIME',
        'for a shipped directory: the state at this time, in UTC unless it has a zone, or this long ago, such as 2h (default: the newest)',
      ),
    },
  ),
  move: command(
    'move',
    'move an appliance that is not running to a database that several nodes share, or back to a data directory; with ' +
      '--from, one that is running and ships',
    [
      'kms move --data ./kms-data --to postgres://kms@db.example.org/kms',
      'kms move --from /mnt/shipped --data ./kms-node --to postgres://kms@db.example.org/kms',
      'kms move --store postgres://kms@db.example.org/kms --to ./kms-back',
      'kms move --data ./kms-data --undo',
    ],
    {
      '--to': {
        ...typedPath('WHERE', 'the URL of a database without an appliance, or a new directory'),
        completes: undefined,
      },
      '--from': directory(
        'DIR',
        'the directory of `kms serve --ship-to`, whose appliance keeps serving until the switch',
      ),
      '--wait': duration('TIME', 'with --from: how long the appliance has to stop and ship the rest (default: 10s)'),
      '--accept-older': toggle('with --from: take what arrived even if the appliance does not say that it stopped'),
      '--undo': toggle('let what was moved away serve again, and give up what it became'),
    },
  ),
  drill: command('drill', 'make a backup, restore it beside the appliance, check everything in it, and delete both', [
    'kms drill',
    'kms drill --json',
  ]),
};
