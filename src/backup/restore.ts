// Restores an appliance from copies of its files into a directory of its own, and begins its next epoch. The seal is
// written last: until then the directory counts as an unfinished restore, which is never served and which the next
// restore starts over.
import { activityRecord } from '../core/activity.ts';
import { noteRestored } from '../core/approval-decision.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { utf8 } from '../crypto/bytes.ts';
import { restoreMark, sealFile, sealName, systemDir, tenantDir } from '../platform/data-dir.ts';
import { type Epoch, nextEpoch } from '../platform/epoch.ts';
import type { Seal } from '../seal/seal.ts';
import type { DataDirectory } from '../storage/store-place.ts';
import { openSystemStore, openTenantStore, type StoreWorld, storesIn } from '../storage/stores.ts';
import { returnPlaces } from '../storage/streamed-positions.ts';
import { type Proof, proveStores } from './prove.ts';
import { copyFiles, type RestoreSource } from './restore-source.ts';

export interface RestoredAppliance {
  readonly epoch: Epoch;
  readonly proof: Proof;
}

/** Entries of the directory until the seal is written; the mark, last of them, says that the restore is unfinished. */
export const restoredNames: readonly string[] = [systemDir, 'tenants', `${restoreMark}.tmp`, restoreMark];

/**
 * `directory` is empty or holds an unfinished restore. Everything is proven before it takes effect. `number`: of the
 * new epoch, if it was already announced; it must be later than the copy's.
 */
export async function restoreInto(
  directory: DataDirectory,
  seal: Seal,
  source: RestoreSource,
  world: World,
  number = world.now(),
): Promise<RestoredAppliance> {
  const { files, wasm } = directory;
  await files.replace(restoreMark, utf8('a restore is under way, or was cut off: run `kms restore` again\n'));
  for (const dir of [systemDir, 'tenants']) await files.removeDir(dir);
  await copyFiles(directory, source);
  const keysOf = (dir: string) => seal.keysFor(sealName(dir));
  const proof = await proveStores({ files, wasm, keysOf }, source.stores, source.summary);
  const epoch = await beginEpoch(storesIn(directory), seal, source, world, number);
  await files.replace(sealFile, source.seal);
  await files.remove(restoreMark);
  await files.syncDir('.');
  return { epoch, proof };
}

/**
 * Begins a new epoch, on purpose and recorded: clients that remember the appliance's earlier state learn that it was
 * restored.
 */
export async function beginEpoch(
  stores: StoreWorld,
  seal: Seal,
  { origin }: Pick<RestoreSource, 'origin'>,
  world: World,
  number: number,
): Promise<Epoch> {
  const system = await openSystemStore(stores, seal.keysFor(systemDir));
  try {
    const records = await system.transaction((tables) => tables.tenants.all());
    const epoch = await system.transaction((tx) => {
      // The copy's stores may be of different moments, and go on from here, so the rollback guard is reset.
      for (const { dir } of records) tx.marks.erase(dir);
      return nextEpoch(tx.settings, number, origin);
    });
    const ends = new Map<string, number>();
    for (const { id, dir, deletedAt } of records) {
      if (deletedAt !== undefined) continue;
      const tenant = await openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
      ends.set(id, tenant.status().activityCount);
      await tenant
        .transaction((tx) => {
          tx.record(
            activityRecord(world, {
              keyid: localCaller.id,
              action: 'system.restore',
              props: { from: origin.kind, madeAt: origin.madeAt, epoch: epoch.number },
            }),
          );
          noteRestored({ tx, world }, origin.kind);
        })
        .finally(() => tenant.close());
    }
    await returnPlaces(system, ends);
    return epoch;
  } finally {
    await system.close();
  }
}
