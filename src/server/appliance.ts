// An opened appliance: seal, stores, tenants and the app over them. `serve` puts it on the network; a command without a server opens one
// for itself. Holding it open means holding the data directory's lock.
import { resolve } from 'node:path';
import { type DirectoryLock, lockDirectory } from '../store/lock.ts';
import { nodeFiles } from '../store/node-files.ts';
import { type Appliance, assemble } from './assemble.ts';
import { backupBeforeMigration } from './backup/before-migration.ts';
import { openCopies } from './backup/service.ts';
import type { OpenedSeal } from './custody/unlock.ts';
import { initMark, needAppliance } from './data-dir.ts';
import { needPrivateDirectory } from './exposure.ts';
import { filesInPlace } from './files-in-place.ts';
import { hardenProcess } from './hardening.ts';
import { Metrics } from './metrics/metrics.ts';
import { onStoreNotice } from './notices.ts';
import type { OpenOptions } from './open-options.ts';
import { sqlWasm } from './runtime.ts';
import { openSealFile } from './seal-file.ts';
import { SealKeeper } from './seal-keeper.ts';
import { guardedFiles } from './space/guarded-files.ts';
import { SpaceGuard } from './space/space-guard.ts';
import { openSystemStore, type StoreWorld, type SystemStore, systemDir } from './stores.ts';
import { TenantAdmin } from './tenant-admin.ts';
import { Tenants } from './tenants.ts';
import { fileTrouble } from './trouble.ts';
import { systemWorld } from './world.ts';

/** Opens the appliance in a data directory for this process alone. Throws `sealed` where the master key is not to be had. */
export async function openAppliance(options: OpenOptions): Promise<Appliance> {
  const data = resolve(options.data);
  await needAppliance(data);
  await needPrivateDirectory(data);
  await hardenProcess();
  try {
    const lock = lockDirectory(data);
    try {
      const opened = await openSealFile(data, { ...options.sources, keyFile: options.keyFile });
      const appliance = await openUnsealed(options, opened, lock);
      const close = (): Promise<void> => appliance.close().finally(() => lock.release());
      return { ...appliance, close };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw fileTrouble(error, data);
  }
}

/** Opens what an opened seal has the keys of. The caller keeps the lock on the directory until all is closed. */
export async function openUnsealed(
  options: OpenOptions,
  opened: OpenedSeal,
  lock: Pick<DirectoryLock, 'needInPlace'>,
): Promise<Appliance> {
  const data = resolve(options.data);
  // What is open, to be closed in reverse order.
  const open: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = open.pop(); close; close = open.pop()) await close();
  };
  try {
    const space = await SpaceGuard.open(data, options.space ?? {}, options.onNotice);
    open.push(() => space.close());
    const files = guardedFiles(
      filesInPlace(nodeFiles(data), () => lock.needInPlace()),
      (bytes) => space.full(bytes),
    );
    const seal = new SealKeeper(opened.seal, files);
    open.push(() => seal.wipe());
    // A crash right after an `init` can leave it behind.
    if (await files.exists(initMark)) await files.remove(initMark);
    const { world = systemWorld() } = options;
    const metrics = new Metrics(world.now(), options.metrics);
    const stores: StoreWorld = {
      root: data,
      files,
      wasm: await sqlWasm(),
      needRoom: (bytes) => space.needRoom(bytes),
      onNotice: onStoreNotice(options.onNotice),
      counts: (dir) => metrics.store(dir),
      beforeMigration: backupBeforeMigration({ files, root: data, seal, now: world.now }, options.onNotice),
    };
    const system = await openSystemStore(stores, seal.keysFor(systemDir));
    open.push(() => system.close());
    const baseUrl = await address(system, options.baseUrl);
    const tenants = new Tenants();
    open.push(async () => {
      for (const { handle } of tenants.all) await handle.store.close();
    });
    const admin = new TenantAdmin({ stores, seal, system, tenants, world, baseUrl, onNotice: options.onNotice });
    await admin.openAll();
    const deps = { root: data, files, seal, system, tenants, admin, world };
    const copies = await openCopies(deps, options.copies ?? {}, options.onNotice);
    open.push(() => copies.close());
    const parts = { files, seal, system, tenants, world, admin, baseUrl, copies, space, metrics, lock };
    return assemble(options, parts, open, closeAll);
  } catch (error) {
    await closeAll();
    throw fileTrouble(error, data);
  }
}

/** Where clients reach the appliance. What it was served under is remembered for whoever opens it without serving it. */
async function address(system: SystemStore, served: OpenOptions['baseUrl']): Promise<() => string> {
  const known = await system.peek(({ settings }) => settings.get('url'));
  if (!served) return () => known ?? 'http://kms.local';
  const url = served();
  if (url !== known) await system.transaction(({ settings }) => settings.set('url', url));
  return served;
}
