// Every store, proven from its files: each seal opened, the database looked through, the activity log's chain followed from its first
// record to its last; and what the records say of the clock and of backups. Changes nothing.
import { stat } from 'node:fs/promises';
import { KmsError } from '../../errors.ts';
import { type CheckedStore, checkStore } from '../../store/check.ts';
import type { Files } from '../../store/files.ts';
import { systemMigrations, tenantMigrations } from '../../store/migrations.ts';
import type { StoreKeys } from '../../store/store-keys.ts';
import { systemDir } from '../stores.ts';
import { tenantDir } from '../tenants.ts';
import type { Examined, Find } from './finding.ts';

export interface StoresToExamine {
  readonly files: Files;
  readonly wasm: Uint8Array;
  readonly stores: readonly { readonly dir: string; readonly keys: StoreKeys }[];
  /** Epoch milliseconds. */
  readonly now: number;
}

const minute = 60_000;
const day = 24 * 60 * minute;
const oldBackup = 7 * day;
const restore = 'keep a copy of the data directory, look for the fault in the disk, and restore from a backup';

/** Tenants, and what is noted of the last backup that was found to restore. */
const query = `SELECT dir, deleted_at, NULL AS backup FROM tenants UNION ALL
SELECT NULL, NULL, value FROM settings WHERE name = 'backup'`;

export async function examineStores({ files, wasm, stores, now }: StoresToExamine, find: Find): Promise<Examined> {
  let activities = 0;
  const there = new Set<string>();
  let system: CheckedStore | undefined;
  for (const { dir, keys } of stores) {
    const isSystem = dir === systemDir;
    const migrations = isSystem ? systemMigrations : tenantMigrations;
    let checked: CheckedStore;
    try {
      checked = await checkStore({ files, dir, keys, wasm, migrations }, isSystem ? query : undefined);
    } catch (error) {
      // Of a deleted tenant it may be erased already.
      if (error instanceof KmsError && error.code === 'not-found' && !isSystem) continue;
      there.add(dir);
      findFault(dir, error, find);
      continue;
    }
    there.add(dir);
    activities += checked.activity.seq;
    if (checked.torn > 0) {
      const message = `the log ends in ${checked.torn} bytes of a write that was never acknowledged`;
      find('advice', 'torn-tail', dir, message, 'nothing: the next start cuts them off');
    }
    if (checked.schema < migrations.length) {
      const message = `its schema is version ${checked.schema}, this program's ${migrations.length}`;
      find('advice', 'migration-due', dir, message, 'nothing: the next start brings it up, after a backup');
    }
    const ahead = (checked.lastActivityAt ?? 0) - now;
    if (ahead > 5 * minute) {
      const message = `the clock is ${Math.round(ahead / minute)} minutes behind the last activity`;
      find('error', 'clock-behind', dir, message, 'set the clock; sessions and backups go by it');
    }
    if (isSystem) system = checked;
  }
  if (system) await examineRecords(system, there, now, find);
  return { stores: stores.length, activities };
}

function findFault(dir: string, error: unknown, find: Find): void {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof KmsError ? error.hint : undefined;
  if (/schema version|newer/.test(message)) {
    find('error', 'newer-format', dir, message, 'use the newer program that wrote it');
  } else if (/activity (log|record)/.test(message)) {
    find('error', 'broken-chain', dir, message, restore);
  } else {
    find('error', 'damaged', dir, message, hint ?? restore);
  }
}

async function examineRecords(
  { rows }: CheckedStore,
  there: ReadonlySet<string>,
  now: number,
  find: Find,
): Promise<void> {
  let noted: string | undefined;
  for (const { dir, deleted_at: deletedAt, backup } of rows) {
    if (typeof backup === 'string') noted = backup;
    if (typeof dir !== 'string' || deletedAt !== null || there.has(tenantDir(dir))) continue;
    find('error', 'store-missing', tenantDir(dir), 'a tenant has no store', restore);
  }
  await examineBackup(noted, now, find);
}

async function examineBackup(noted: string | undefined, now: number, find: Find): Promise<void> {
  const how = '`kms serve --backup-to DIR` makes one each night and restores it on trial';
  if (noted === undefined) {
    find('advice', 'no-backup', 'backups', 'none was made and found to restore yet', how);
    return;
  }
  // Cast: only the keeper of backups writes it.
  const { file, madeAt } = JSON.parse(noted) as { readonly file?: string; readonly madeAt: string };
  const age = now - Date.parse(madeAt);
  const subject = file ?? 'backups';
  if (age > oldBackup) {
    const message = `the last one that was found to restore is ${Math.floor(age / day)} days old`;
    find('warning', 'backup-old', subject, message, `see in the log why no newer one was made; ${how}`);
  }
  if (file !== undefined && !(await stat(file).catch(() => undefined))) {
    find('warning', 'backup-missing', file, 'the last backup that was found to restore is gone', 'make another one');
  }
}
