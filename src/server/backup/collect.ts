// Gathers what a backup copies: of each open store the files of one commit, of each other one its files at rest.
import { toHex } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';
import { listStoreFiles, logName, snapshotName } from '../../store/file-names.ts';
import type { Files } from '../../store/files.ts';
import type { HeldFile, StoreHold } from '../../store/hold.ts';
import type { Store } from '../../store/port.ts';
import type { TenantRecord } from '../../store/tables/tenants.ts';
import { type SystemStore, systemDir } from '../stores.ts';
import { type Tenants, tenantDir } from '../tenants.ts';
import type { CopiedStore } from './write.ts';

export interface Collecting {
  readonly files: Files;
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly admin: {
    list(): Promise<readonly TenantRecord[]>;
    /** Runs while no tenant is made, deleted, restored or erased. */
    exclusively<R>(run: () => Promise<R>): Promise<R>;
  };
}

export interface Collected {
  readonly stores: readonly (CopiedStore & { readonly hold?: StoreHold })[];
  release(): void;
}

/** No request waits for it; tenants are made and deleted before or after it. */
export function collect(
  { files, system, tenants, admin }: Collecting,
  { counted }: { readonly counted: boolean },
): Promise<Collected> {
  return admin.exclusively(async () => {
    const holds: StoreHold[] = [];
    const open = async (dir: string, store: Pick<Store<never>, 'hold'>): Promise<Collected['stores'][number]> => {
      if (!store.hold) throw new KmsError('refused', 'this kind of store is not backed up by its files');
      const hold = await store.hold(counted);
      holds.push(hold);
      const { uid, sequence, activity, tables } = hold;
      const summary = counted ? { summary: { activity, tables } } : {};
      return { dir, uid: toHex(uid), sequence, files: hold.files, ...summary, hold };
    };
    const release = (): void => {
      for (const hold of holds) hold.release();
    };
    const served = new Map(tenants.all.map(({ record, handle }) => [record.id, handle.store]));
    try {
      const records = await admin.list();
      const found = await Promise.allSettled([
        open(systemDir, system),
        ...records.map(({ id, dir }) => {
          const store = served.get(id);
          return store ? open(tenantDir(dir), store) : storeAtRest(files, tenantDir(dir));
        }),
      ]);
      const stores = found.flatMap((each) => {
        if (each.status === 'rejected') throw each.reason;
        return each.value ? [each.value] : [];
      });
      return { stores, release };
    } catch (error) {
      release();
      throw error;
    }
  });
}

/** A store that nobody has open; undefined where none is. */
export async function storeAtRest(files: Files, dir: string): Promise<CopiedStore | undefined> {
  const { snapshots, logs } = await listStoreFiles(files, dir);
  const generation = snapshots.at(-1);
  if (generation === undefined) return undefined;
  const snapshot = snapshotName(dir, generation);
  const segments = (await files.list(dir)).filter((name) => /^activity-[0-9]{12}\.kms$/.test(name)).sort();
  const names = [
    snapshot,
    ...segments.map((name) => `${dir}/${name}`),
    ...logs.filter((number) => number > generation).map((number) => logName(dir, number)),
  ];
  const held: HeldFile[] = [];
  for (const name of names) held.push({ name, bytes: await files.size(name) });
  return { dir, uid: toHex(await files.readAt(snapshot, 16, 16)), files: held };
}
