// An opened appliance: seal, stores, tenants and the app over them. `serve` puts it on the network; a command without a server opens one
// for itself. Holding it open means holding the data directory's lock.
import { resolve } from 'node:path';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { purgeExpired } from '../core/keyring-deletion.ts';
import { type App, createApp } from '../http/app.ts';
import type { LocalRoute, Logger, Readiness, Sealing } from '../http/deps.ts';
import type { Slot } from '../seal/slot.ts';
import type { Files } from '../store/files.ts';
import { lockDirectory } from '../store/lock.ts';
import { nodeFiles } from '../store/node-files.ts';
import { type ApplianceActivity, recordInTenants } from './appliance-activity.ts';
import { backupBeforeMigration } from './backup/before-migration.ts';
import { type Copies, type CopySettings, openCopies } from './backup/service.ts';
import { consoleFiles } from './console-files.ts';
import type { KeySources } from './custody/key-sources.ts';
import { masterRoutes } from './custody/master-admin.ts';
import type { OpenedSeal } from './custody/unlock.ts';
import { initMark, needAppliance } from './data-dir.ts';
import { descriptionFiles } from './description-files.ts';
import type { CertificateFiles } from './doctor/certificates.ts';
import { doctorRoute } from './doctor/served.ts';
import { needPrivateDirectory } from './exposure.ts';
import { hardenProcess } from './hardening.ts';
import { Metrics, type MetricsSettings } from './metrics/metrics.ts';
import { type Notice, onStoreNotice, silentLogger } from './notices.ts';
import { type PeopleSettings, servedPeople } from './people.ts';
import { Rekeying, rekeyRoute } from './rekey.ts';
import { sqlWasm } from './runtime.ts';
import { openSealFile } from './seal-file.ts';
import { SealKeeper } from './seal-keeper.ts';
import { guardedFiles } from './space/guarded-files.ts';
import { SpaceGuard, type SpaceSettings } from './space/space-guard.ts';
import { type ApplianceStatus, applianceStatus } from './status.ts';
import { openSystemStore, type StoreWorld, type SystemStore, systemDir } from './stores.ts';
import { TenantAdmin } from './tenant-admin.ts';
import { tenantRoutes } from './tenant-routes.ts';
import { Tenants } from './tenants.ts';
import { fileTrouble } from './trouble.ts';
import { systemWorld } from './world.ts';

export interface OpenOptions {
  /** The data directory. */
  readonly data: string;
  readonly keyFile?: string | undefined;
  /** Where else the master key may come from. */
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** Where clients reach it; asked anew for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  readonly logger?: Logger;
  readonly onNotice?: (notice: Notice) => void;
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
  readonly people?: PeopleSettings;
  /** Scheduled backups and shipping. */
  readonly copies?: CopySettings | undefined;
  readonly metrics?: MetricsSettings | undefined;
  /** What it is served with, for doctor to look at. */
  readonly certificates?: CertificateFiles | undefined;
  /** How the room on the disk is watched; looked at once when absent. */
  readonly space?: SpaceSettings | undefined;
  /** By which it can be sealed from outside; absent where it cannot. */
  readonly sealing?: Sealing;
  /** Clock and randomness; the system's when absent. */
  readonly world?: World;
}

export interface Appliance {
  readonly app: App;
  /** A request from the administrator at this machine. */
  fetchLocal(request: Request): Promise<Response>;
  status(): Promise<ApplianceStatus>;
  /** Backups and shipping, and what `/readyz`, metrics and doctor tell of them. */
  readonly copies: Pick<Copies, 'status' | 'backUpNow'>;
  /** Who holds the master key. */
  custodians(): readonly Slot[];
  /** Adds a record to the log of every tenant. */
  record(activity: ApplianceActivity): Promise<void>;
  /** Waits for what is under way, makes it durable, wipes the keys and lets go of the files. */
  close(): Promise<void>;
}

const day = 24 * 60 * 60 * 1000;

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
      const appliance = await openUnsealed(options, opened);
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

/** Opens what an opened seal has the keys of. The caller holds the directory's lock. */
export async function openUnsealed(options: OpenOptions, opened: OpenedSeal): Promise<Appliance> {
  const data = resolve(options.data);
  // What is open, to be closed in reverse order.
  const open: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = open.pop(); close; close = open.pop()) await close();
  };
  try {
    const space = await SpaceGuard.open(data, options.space ?? {}, options.onNotice);
    open.push(() => space.close());
    const files = guardedFiles(nodeFiles(data), (bytes) => space.full(bytes));
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
    const parts = { files, seal, system, tenants, world, admin, baseUrl, copies, space, metrics };
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

interface Parts {
  readonly files: Files;
  readonly seal: SealKeeper;
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly world: World;
  readonly admin: TenantAdmin;
  readonly baseUrl: () => string;
  readonly copies: Copies;
  readonly space: SpaceGuard;
  readonly metrics: Metrics;
}

function assemble(
  options: OpenOptions,
  { files, seal, system, tenants, world, admin, baseUrl, copies, space, metrics }: Parts,
  open: (() => Promise<void> | void)[],
  closeAll: () => Promise<void>,
): Appliance {
  const { logger = silentLogger, bodyLimit, onNotice, sealing } = options;
  const status = (): Promise<ApplianceStatus> =>
    applianceStatus(seal.current, system, tenants, copies.status(), space.status());
  const rekeying = new Rekeying({ seal, tenants, world, onNotice });
  // A command that is done in a moment leaves it to a server.
  if (sealing) rekeying.resume();
  const { people, close: closePeople } = servedPeople(world, options.people);
  open.push(closePeople);
  const app = createApp({
    tenants,
    world,
    logger,
    get baseUrl() {
      return baseUrl();
    },
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    people,
    consoleFiles: consoleFiles(),
    descriptionFiles: descriptionFiles(),
    ready: () => ({
      ...readiness(system, tenants, space),
      details: { ...copies.details(), ...diskDetails(space) },
    }),
    refuseWrites: () => space.refusal,
    backup: () => copies.stream(),
    meter: metrics.meter,
    metrics: ({ tenant, store }) =>
      metrics.text(tenant.id, tenants.dirOf(tenant.id), {
        store: store.status(),
        copies: copies.status(),
        space: space.status(),
      }),
    stateOf: ({ tenant, store }) => `${seal.current.applianceId}.${tenant.id}.${copies.epoch.number}.${store.sequence}`,
    ...(sealing && { sealing }),
    localRoutes: [
      { method: 'GET', path: '/local/status', handle: status },
      ...copies.routes,
      doctorRoute({
        root: resolve(options.data),
        files,
        seal,
        system,
        tenants,
        admin,
        copies,
        certificates: options.certificates ?? {},
        now: world.now,
      }),
      ...[...tenantRoutes(admin, baseUrl), rekeyRoute(rekeying)].map((route) => withRoom(route, space)),
      ...masterRoutes({ seal, tenants, world }),
      ...(sealing ? [localSeal(sealing, tenants, world)] : []),
    ],
  });
  const purge = async (): Promise<void> => {
    await admin.purge();
    for (const { handle } of tenants.all) await handle.store.transaction((tx) => purgeExpired({ tx, world }));
  };
  let purging: Promise<void> = Promise.resolve();
  const purgeQuietly = (): void => {
    purging = purge().catch((cause: unknown) =>
      onNotice?.({ level: 'warn', message: 'deleted keyrings and tenants could not be erased', cause }),
    );
  };
  const timer = setInterval(purgeQuietly, day).unref();
  open.push(async () => {
    clearInterval(timer);
    await purging;
  });
  purgeQuietly();
  return {
    app,
    fetchLocal: async (request) => app.fetch(request, { local: true }),
    status,
    copies,
    custodians: () => seal.current.slots,
    record: (activity) => recordInTenants(tenants, world, activity),
    close: closeAll,
  };
}

/** Seals for the administrator at the machine, whose request belongs to no tenant. */
function localSeal(sealing: Sealing, tenants: Tenants, world: World): LocalRoute {
  return {
    method: 'POST',
    path: '/local/seal',
    async handle() {
      await recordInTenants(tenants, world, { action: 'system.seal', keyid: localCaller.id, props: {} });
      sealing.seal();
      return sealing.status();
    },
  };
}

/** The same endpoint, refused while nothing can be changed. */
function withRoom(route: LocalRoute, space: SpaceGuard): LocalRoute {
  if (route.method === 'GET') return route;
  return {
    ...route,
    async handle(input) {
      if (space.refusal) throw space.refusal;
      return route.handle(input);
    },
  };
}

function diskDetails(space: SpaceGuard): Readonly<Record<string, unknown>> {
  const status = space.status();
  return status ? { disk: { freePercent: status.freePercent, writable: status.reason === undefined } } : {};
}

function readiness(system: SystemStore, tenants: Tenants, { refusal }: SpaceGuard): Readiness {
  for (const store of [system, ...tenants.all.map(({ handle }) => handle.store)]) {
    const { writable, reason } = store.status();
    if (!writable) return { ok: false, reason: reason ?? 'the store cannot write' };
  }
  return refusal ? { ok: false, reason: refusal.message } : { ok: true };
}
