// The app over an opened appliance's parts: what the endpoints reach, the local endpoints, and what is done once a day.
import { resolve } from 'node:path';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { purgeExpired } from '../core/keyring-deletion.ts';
import { type App, createApp } from '../http/app.ts';
import type { LocalRoute, Readiness, Sealing } from '../http/deps.ts';
import type { Slot } from '../seal/slot.ts';
import type { Files } from '../store/files.ts';
import type { DirectoryLock } from '../store/lock.ts';
import { inWords } from '../store/notice.ts';
import { type ApplianceActivity, recordInTenants } from './appliance-activity.ts';
import type { Copies } from './backup/service.ts';
import { consoleFiles } from './console-files.ts';
import { masterRoutes } from './custody/master-admin.ts';
import { descriptionFiles } from './description-files.ts';
import { doctorRoute } from './doctor/served.ts';
import type { Metrics } from './metrics/metrics.ts';
import { silentLogger } from './notices.ts';
import type { OpenOptions } from './open-options.ts';
import { servedPeople } from './people.ts';
import { Rekeying, rekeyRoute } from './rekey.ts';
import type { SealKeeper } from './seal-keeper.ts';
import type { SpaceGuard } from './space/space-guard.ts';
import { type ApplianceStatus, applianceStatus } from './status.ts';
import type { SystemStore } from './stores.ts';
import type { TenantAdmin } from './tenant-admin.ts';
import { tenantRoutes } from './tenant-routes.ts';
import type { Tenants } from './tenants.ts';

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

/** What is open before there is an app. */
export interface Parts {
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
  readonly lock: Pick<DirectoryLock, 'needInPlace'>;
}

/** Puts the app over the opened parts; what it starts itself is added to `open`, which `closeAll` closes. */
export function assemble(
  options: OpenOptions,
  { files, seal, system, tenants, world, admin, baseUrl, copies, space, metrics, lock }: Parts,
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
      ...readiness(system, tenants, space, lock),
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

function readiness(system: SystemStore, tenants: Tenants, { refusal }: SpaceGuard, lock: Parts['lock']): Readiness {
  try {
    lock.needInPlace();
  } catch (error) {
    return { ok: false, reason: inWords(error) };
  }
  for (const store of [system, ...tenants.all.map(({ handle }) => handle.store)]) {
    const { writable, reason } = store.status();
    if (!writable) return { ok: false, reason: reason ?? 'the store cannot write' };
  }
  return refusal ? { ok: false, reason: refusal.message } : { ok: true };
}
