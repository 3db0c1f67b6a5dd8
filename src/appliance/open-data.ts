// The data of an appliance: its seal, stores and tenants, opened in order. Nothing on disk changes before all is read.

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { needNoFence, takeBack } from '../backup/fence.ts';
import { livesShippedTo, shippedTo } from '../backup/ship.ts';
import { backupBeforeMigration } from '../backup/write.ts';
import { SealKeeper, type SealPlace, sealInFiles } from '../custody/seal-keeper.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { KmsError } from '../errors.ts';
import { initMark, systemDir } from '../platform/data-dir.ts';
import { epochIn, shipToIn } from '../platform/epoch.ts';
import { storeEvents } from '../platform/events.ts';
import { foreignFiles } from '../platform/foreign-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { guardedFiles, SpaceGuard, type SpaceSettings } from '../platform/space-guard.ts';
import { acceptOlder, type ReadStores, readStores, reportAccepted } from '../storage/read-stores.ts';
import { RollbackGuard } from '../storage/rollback-guard.ts';
import { noAddress, Tenants } from '../storage/served-tenants.ts';
import { StoreDirectories, type StorePlace } from '../storage/store-place.ts';
import type { StoreWorld, SystemStore } from '../storage/stores.ts';
import type { Files } from '../store/files.ts';
import { Metrics } from '../telemetry/metrics/metrics.ts';
import type { ApplianceOptions, Holder } from './config.ts';
import type { Ends } from './ends.ts';
import { TenantAdmin } from './tenant-admin.ts';

/** The opened data: files, keys and stores. */
export interface OpenData {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly sealPlace: SealPlace;
  readonly seal: SealKeeper;
  readonly place: StorePlace;
  readonly space: SpaceGuard;
  readonly metrics: Metrics;
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly admin: TenantAdmin;
  readonly baseUrl: () => string;
}

export async function openData(
  options: ApplianceOptions,
  opened: OpenedSeal,
  { directory, world, serves, elsewhere, known }: Holder,
  ends: Ends,
): Promise<OpenData> {
  const { onEvent } = options;
  const { now, random } = world;
  const { root, node } = directory;
  let guard: SpaceGuard | undefined;
  // A node's own files, beside its database, need no reserve.
  const files = node
    ? directory.files
    : guardedFiles(directory.files, async (bytes) => (await guard?.full(bytes)) ?? false);
  const sealPlace = node?.seal ?? sealInFiles(files, root);
  const seal = new SealKeeper(opened.seal, sealPlace);
  ends.push(() => seal.wipe());
  const metrics = new Metrics(now(), options.metrics);
  const toLog = storeEvents(onEvent);
  let noteNow = async (): Promise<void> => {};
  const wasm = await sqlWasm();
  const place: StorePlace = node
    ? new (await import('../cluster/shared-stores.ts')).SharedStores(node, seal, elsewhere)
    : new StoreDirectories({ root, files, wasm, needFreeSpace: async (bytes) => guard?.needFreeSpace(bytes) });
  const backUp = backupBeforeMigration({ files, place, root, seal, now }, onEvent);
  const stores: StoreWorld = {
    place,
    files,
    wasm,
    onEvent: (dir, event) => {
      toLog(dir, event);
      // Noted while it is known: a restart must not take the remaining data for complete.
      if (['log-lost', 'commits-lost', 'recovery-failed'].includes(event.kind)) void noteNow();
    },
    meter: (dir) => metrics.store(dir),
    beforeMigration: async () => {
      await node?.maySchemasChange({ told: options.onWaiting, stopping: options.stopping });
      await backUp();
    },
  };
  const read = await readStores(stores, seal, options.acceptOlder, known);
  ends.push(() => read.discard());
  const shipping = placesShippedTo(options, root, read.system);
  const shippedIn = (epoch: number) => shipping.all.map((to) => shippedTo(to, seal.current, epoch));
  const takesBack = options.takeBack ?? false;
  const fenced = await needNoFence({ files, shipped: shippedIn(epochIn(read.system)), takesBack });
  // Everything is read and sound: files change only from here on.
  const space = await SpaceGuard.open(root, node ? unwatched : (options.space ?? {}), onEvent);
  guard = space;
  ends.push(() => space.close());
  // Makes the reserve in the background: the disk may fill up before the first regular check.
  if (serves) void space.look();
  // A crash right after an `init` may leave this mark behind.
  if (await files.exists(initMark)) await files.remove(initMark);
  const system = await read.system.open();
  ends.push(() => system.close());
  if (options.baseUrl && shipping.now !== shipping.before) {
    await system.transaction(({ settings }) => settings.set('ship-to', shipping.now));
  }
  const baseUrl = await address(system, options.baseUrl);
  const tenants = new Tenants();
  let closeRollbackGuard = async (): Promise<void> => {};
  ends.push(async () => {
    for (const { handle } of tenants.all) await handle.store.close();
    await closeRollbackGuard();
  });
  const admin = new TenantAdmin({ stores, seal, system, tenants, world, baseUrl, onEvent });
  await admin.openAll(read.tenants);
  await acceptOlder({ system, tenants, read, world });
  reportAccepted(read, onEvent);
  if (fenced) {
    const { from } = fenced;
    const successors = (await Promise.all(shipping.all.map((to) => livesShippedTo(to, seal.current)))).flat();
    await takeBack({ files, system, tenants, world, from, successors, host: hostname() });
  } else if (takesBack) {
    onEvent?.({ level: 'warn', message: '--take-back has no effect, no standby took over: leave it out' });
  }
  await read.discard();
  const mustWait = (): boolean => space.refusal !== undefined;
  const keys = seal.keysFor(systemDir);
  const rollbackGuard = new RollbackGuard({ files, keys, system, tenants, now, random, onEvent, mustWait }, read);
  if (read.accepted.length > 0) await rollbackGuard.note();
  noteNow = () => rollbackGuard.try();
  closeRollbackGuard = async () => {
    await rollbackGuard.close();
    for (const [dir, mark] of rollbackGuard.known) known.set(dir, mark);
  };
  // It also notes the positions at its end.
  if (serves) rollbackGuard.start();
  return { root, files, sealPlace, seal, place, space, metrics, system, tenants, admin, baseUrl };
}

/** A node keeps next to nothing on its own disk, and its database reports a full disk itself. */
const unwatched: SpaceSettings = {
  look: async () => {
    throw new KmsError('internal', 'the disk of a node is not watched');
  },
};

/** The current and the previous shipping directory; a standby that took over did so in one of them. Empty if none. */
function placesShippedTo({ copies }: ApplianceOptions, root: string, system: ReadStores['system']) {
  const before = shipToIn(system);
  const now = copies?.shipping ? resolve(copies.shipping.to) : '';
  const all = [...new Set([now, before])].filter((to) => to !== '');
  // The previous directory may contain the data by now; it is only read, never written.
  return { before, now, all: all.map((path) => foreignFiles({ path, own: path === now ? [root] : [] })) };
}

/**
 * The address for clients. The served address is remembered for commands that open the appliance without serving it.
 */
async function address(system: SystemStore, served: ApplianceOptions['baseUrl']): Promise<() => string> {
  const known = await system.transaction(({ settings }) => settings.get('url'));
  if (!served) return () => known ?? noAddress;
  const url = served();
  if (url !== known) await system.transaction(({ settings }) => settings.set('url', url));
  return served;
}
