// Files and keys of tenants, made and removed so that a crash at any step leaves what the next start can finish or clear away.
// Nothing is ever removed that a tenant's record stands for, nor what was not marked as unfinished.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8 } from '../crypto/encoding.ts';
import type { Store } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import type { Notice } from './notices.ts';
import type { SealKeeper } from './seal-keeper.ts';
import { createStore, openTenantStore, type StoreWorld, systemDir } from './stores.ts';
import { tenantDir } from './tenants.ts';
import { systemCode } from './trouble.ts';

export interface TenantFiles {
  readonly stores: StoreWorld;
  readonly seal: SealKeeper;
}

/** In a tenant's directory until its record is there. */
function markOf(dir: string): string {
  return `${tenantDir(dir)}/tenant.new`;
}

/** Makes directory, keys and an empty store, all of which count as unfinished until `finishFiles`. */
export async function makeFiles({ stores, seal }: TenantFiles, dir: string, now: number): Promise<Store> {
  const { files } = stores;
  await files.makeDir(tenantDir(dir));
  await files.replace(markOf(dir), utf8('a tenant is being made; without its record the next start removes this\n'));
  await seal.change((current) => current.withStore(dir));
  await createStore(stores, tenantDir(dir), seal.keysFor(dir), now);
  return openFiles({ stores, seal }, dir);
}

export function openFiles({ stores, seal }: TenantFiles, dir: string): Promise<Store> {
  return openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
}

/** The tenant's record is durable. */
export async function finishFiles({ stores: { files } }: TenantFiles, dir: string): Promise<void> {
  if (await files.exists(markOf(dir))) await files.remove(markOf(dir));
}

/** Removes keys and files, the keys first: from then on nobody can read the files. */
export async function removeFiles({ stores, seal }: TenantFiles, dir: string): Promise<void> {
  // Written even where there is no key: a step that failed may have left one in the file alone.
  await seal.change((current) => current.withoutStore(dir));
  const { files } = stores;
  const mark = markOf(dir);
  // The mark last, so that a crash in between leaves it with what is still there.
  for (const name of await files.list(tenantDir(dir))) {
    if (`${tenantDir(dir)}/${name}` !== mark) await files.remove(`${tenantDir(dir)}/${name}`);
  }
  await files.removeDir(tenantDir(dir));
}

/** Whether the directory is marked, or the crash came before it could be and nothing is in it. */
async function isUnfinished({ stores: { files } }: TenantFiles, dir: string): Promise<boolean> {
  const names = await files.list(tenantDir(dir));
  return names.every((name) => name.endsWith('.tmp')) || (await files.exists(markOf(dir)));
}

/** What a crash left of making a tenant is removed, or its mark is where the record got there. */
export async function clearUnfinished(
  tenantFiles: TenantFiles,
  records: readonly TenantRecord[],
  onNotice: ((notice: Notice) => void) | undefined,
): Promise<void> {
  const { stores, seal } = tenantFiles;
  const known = new Set(records.map(({ dir }) => dir));
  const present = await directories(join(stores.root, 'tenants'));
  for (const dir of present) {
    if (known.has(dir)) {
      await finishFiles(tenantFiles, dir);
    } else if (await isUnfinished(tenantFiles, dir)) {
      await removeFiles(tenantFiles, dir);
      onNotice?.({
        level: 'warn',
        message: `${tenantDir(dir)}: removed what was left of a tenant that was never finished`,
      });
    } else {
      onNotice?.({ level: 'warn', message: `${tenantDir(dir)}: belongs to no tenant; it is left as it is` });
    }
  }
  for (const dir of seal.current.stores) {
    if (dir === systemDir || known.has(dir) || present.includes(dir)) continue;
    onNotice?.({ level: 'warn', message: `${tenantDir(dir)}: the seal has keys for it, and there is no such tenant` });
  }
}

async function directories(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
