// An opened appliance: seal, stores, tenants and the app over them. `serve` puts it on the network; a command without a server opens one
// for itself. Holding it open means holding the data directory's lock.
import { resolve } from 'node:path';
import { purgeExpired } from '../core/keyring-deletion.ts';
import { type App, createApp } from '../http/app.ts';
import type { Logger, Readiness } from '../http/deps.ts';
import type { Seal } from '../seal/seal.ts';
import { lockDirectory } from '../store/lock.ts';
import { nodeFiles } from '../store/node-files.ts';
import { initMark, isOpenToOthers, needAppliance } from './data-dir.ts';
import { isExposed } from './key-place.ts';
import { type Notice, onStoreNotice, silentLogger } from './notices.ts';
import { type PeopleSettings, servedPeople } from './people.ts';
import { sqlWasm } from './runtime.ts';
import { openSealFile } from './seal-file.ts';
import { type ApplianceStatus, applianceStatus } from './status.ts';
import { openSystemStore, openTenantStore, type StoreWorld, type SystemStore, systemDir } from './stores.ts';
import { servedTenant, Tenants, tenantDir } from './tenants.ts';
import { fileTrouble } from './trouble.ts';
import { systemWorld } from './world.ts';

export interface OpenOptions {
  /** The data directory. */
  readonly data: string;
  readonly keyFile?: string | undefined;
  /** Where clients reach it; asked anew for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  readonly logger?: Logger;
  readonly onNotice?: (notice: Notice) => void;
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
  readonly people?: PeopleSettings;
}

export interface Appliance {
  readonly app: App;
  /** A request from the administrator at this machine. */
  fetchLocal(request: Request): Promise<Response>;
  status(): Promise<ApplianceStatus>;
  /** Waits for what is under way, makes it durable and lets go of the directory. */
  close(): Promise<void>;
}

const day = 24 * 60 * 60 * 1000;

export async function openAppliance(options: OpenOptions): Promise<Appliance> {
  const data = resolve(options.data);
  await needAppliance(data);
  // What is open, to be closed in reverse order.
  const open: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = open.pop(); close; close = open.pop()) await close();
  };
  try {
    const lock = lockDirectory(data);
    open.push(() => lock.release());
    const { seal, place } = await openSealFile(data, options.keyFile);
    open.push(() => seal.wipe());
    await warn(data, place, options);
    const files = nodeFiles(data);
    // A crash right after an `init` can leave it behind.
    if (await files.exists(initMark)) await files.remove(initMark);
    const stores: StoreWorld = { root: data, files, wasm: await sqlWasm(), onNotice: onStoreNotice(options.onNotice) };
    const system = await openSystemStore(stores, seal.keysFor(systemDir));
    open.push(() => system.close());
    const tenants = await openTenants(stores, seal, system, open);
    return assemble(options, seal, system, tenants, open, closeAll);
  } catch (error) {
    await closeAll();
    throw fileTrouble(error, data);
  }
}

async function openTenants(
  stores: StoreWorld,
  seal: Seal,
  system: SystemStore,
  open: (() => Promise<void> | void)[],
): Promise<Tenants> {
  const tenants = new Tenants();
  for (const record of await system.peek((tables) => tables.tenants.all())) {
    if (record.deletedAt !== undefined) continue;
    const keys = seal.keysFor(record.dir);
    const store = await openTenantStore(stores, tenantDir(record.dir), keys);
    open.push(() => store.close());
    tenants.put(servedTenant(record, keys, store));
  }
  return tenants;
}

function assemble(
  options: OpenOptions,
  seal: Seal,
  system: SystemStore,
  tenants: Tenants,
  open: (() => Promise<void> | void)[],
  closeAll: () => Promise<void>,
): Appliance {
  const { logger = silentLogger, baseUrl = () => 'http://kms.local', bodyLimit, onNotice } = options;
  const world = systemWorld();
  const status = (): Promise<ApplianceStatus> => applianceStatus(seal, system, tenants);
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
    ready: () => readiness(system, tenants),
    localRoutes: [{ method: 'GET', path: '/local/status', handle: status }],
  });
  const purge = async (): Promise<void> => {
    for (const { handle } of tenants.all) await handle.store.transaction((tx) => purgeExpired({ tx, world }));
  };
  const purgeQuietly = (): void => {
    purge().catch((cause: unknown) =>
      onNotice?.({ level: 'warn', message: 'deleted keyrings could not be erased', cause }),
    );
  };
  const timer = setInterval(purgeQuietly, day).unref();
  open.push(() => clearInterval(timer));
  purgeQuietly();
  return {
    app,
    fetchLocal: async (request) => app.fetch(request, { local: true }),
    status,
    close: closeAll,
  };
}

function readiness(system: SystemStore, tenants: Tenants): Readiness {
  for (const store of [system, ...tenants.all.map(({ handle }) => handle.store)]) {
    const { writable, reason } = store.status();
    if (!writable) return { ok: false, reason: reason ?? 'the store cannot write' };
  }
  return { ok: true };
}

async function warn(data: string, keyFile: string, { onNotice }: OpenOptions): Promise<void> {
  if (!onNotice) return;
  for (const [place, mode] of [
    [data, '0700'],
    [keyFile, '0600'],
  ] as const) {
    const open = place === data ? await isOpenToOthers(place) : await isExposed(place);
    if (open)
      onNotice({ level: 'warn', message: `${place}: others than its owner may read it; set its mode to ${mode}` });
  }
}
