// Puts an appliance back from copies of its files, into a directory of its own, and begins its next epoch. The seal is
// written last: until then the directory counts as a restore that was cut off, which nothing serves and the next
// restore starts over.
import { activityRecord } from '../core/activity.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { utf8 } from '../crypto/bytes.ts';
import { type Epoch, nextEpoch, restoreMark, sealFile, sealName, systemDir, tenantDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import { returnPlaces } from '../storage/places.ts';
import { openSystemStore, openTenantStore, type StoreWorld } from '../storage/stores.ts';
import type { Summary } from './format.ts';
import { type ExpectedStore, type Proof, proveStores } from './prove.ts';

export interface RestoredFile {
  /** Within the data directory. */
  readonly name: string;
  read(): AsyncIterable<Uint8Array>;
}

/** What is restored. */
export interface RestoreSource {
  /** The seal file. */
  readonly seal: Uint8Array;
  readonly stores: readonly (ExpectedStore & { readonly files: readonly RestoredFile[] })[];
  readonly summary: Summary;
  /** What goes into the activity log: where it came from and of which time it is. */
  readonly origin: { readonly kind: 'backup' | 'shipped'; readonly madeAt: string };
}

export interface RestoredAppliance {
  readonly epoch: Epoch;
  readonly proof: Proof;
}

/** What there is in the directory until the seal is; the mark says that as the last of them. */
export const restoredNames: readonly string[] = [systemDir, 'tenants', `${restoreMark}.tmp`, restoreMark];

/**
 * `stores.root` is empty or holds what a restore before left. Everything is proven before it counts. `number`: of the
 * epoch that begins, where somebody was told already; a later one than that of the copy.
 */
export async function restoreInto(
  stores: StoreWorld,
  seal: Seal,
  source: RestoreSource,
  world: World,
  number = world.now(),
): Promise<RestoredAppliance> {
  const { files, wasm } = stores;
  await files.replace(restoreMark, utf8('a restore is under way, or was cut off: run `kms restore` again\n'));
  for (const dir of [systemDir, 'tenants']) await files.removeDir(dir);
  await copyFiles(stores, source);
  const keysOf = (dir: string) => seal.keysFor(sealName(dir));
  const proof = await proveStores({ files, wasm, keysOf }, source.stores, source.summary);
  const epoch = await beginEpoch(stores, seal, source, world, number);
  await files.replace(sealFile, source.seal);
  await files.remove(restoreMark);
  await files.syncDir('.');
  return { epoch, proof };
}

/** The copies alone, for a trial beside the appliance that they are of. */
export async function copyFiles(
  { files }: Pick<StoreWorld, 'files'>,
  { stores }: Pick<RestoreSource, 'stores'>,
): Promise<void> {
  for (const { dir, files: copied } of stores) {
    await files.makeDir(dir);
    for (const { name, read } of copied) await files.replace(name, read());
  }
}

/** On purpose, and recorded: whoever remembers the appliance as it was before is told that it was put back. */
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
      // Of the copy's stores each is of its own moment, and they go on from here.
      for (const { dir } of records) tx.marks.erase(dir);
      return nextEpoch(tx.settings, number, origin);
    });
    const ends = new Map<string, number>();
    for (const { id, dir, deletedAt } of records) {
      if (deletedAt !== undefined) continue;
      const tenant = await openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
      ends.set(id, tenant.status().activityCount);
      await tenant
        .transaction((tx) =>
          tx.record(
            activityRecord(world, {
              keyid: localCaller.id,
              action: 'system.restore',
              props: { from: origin.kind, madeAt: origin.madeAt, epoch: epoch.number },
            }),
          ),
        )
        .finally(() => tenant.close());
    }
    await returnPlaces(system, ends);
    return epoch;
  } finally {
    await system.close();
  }
}
