// OpenAppliance is an appliance whose keys are at hand: seal, stores, tenants, copies, and the app over them. Its parts
// are opened one after the other, each upon those before it, and closed in reverse order.

import { resolve } from 'node:path';
import type { OpenStatus } from '../api/local.ts';
import type { SealStatus } from '../api/system.ts';
import { byOperator } from '../core/authorization.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { purgeExpired } from '../core/keyrings.ts';
import { systemError } from '../errors.ts';
import { type App, createApp } from '../http/app.ts';
import type { Sealing } from '../http/deps.ts';
import { type Logger, silentLogger } from '../http/request-log.ts';
import { formatMark } from '../model/store-mark.ts';
import type { Slot } from '../seal/slot.ts';
import type { Files } from '../store/files.ts';
import type { DirectoryLock } from '../store/lock.ts';
import { nodeFiles } from '../store/node-files.ts';
import { type Copies, type CopySettings, openCopies } from './backup/service.ts';
import { backupBeforeMigration } from './backup/write.ts';
import type { KeySources } from './custody/key-sources.ts';
import { masterHandlers } from './custody/master-admin.ts';
import type { OpenedSeal } from './custody/unlock.ts';
import { initMark, systemDir } from './data-dir.ts';
import type { CertificateFiles } from './doctor/keys.ts';
import { examineServed } from './doctor/served.ts';
import { systemWorld } from './environment.ts';
import { type ApplianceEvent, storeEvents } from './events.ts';
import { filesInPlace } from './file-ports.ts';
import { type PeopleSettings, servedPeople } from './mail.ts';
import { Metrics, type MetricsSettings } from './metrics/metrics.ts';
import { consoleFiles, descriptionFiles, sqlWasm } from './program-files.ts';
import { acceptOlder, type ReadStores, readStores } from './read-stores.ts';
import { Rekeying } from './rekey.ts';
import { SealKeeper } from './seal-keeper.ts';
import { guardedFiles, SpaceGuard, type SpaceSettings } from './space/space-guard.ts';
import { activityDetails, applianceStatus, diskDetails, readiness } from './status.ts';
import type { StoreWorld, SystemStore } from './stores.ts';
import { TenantAdmin } from './tenant-admin.ts';
import { tenantHandlers } from './tenant-routes.ts';
import { type ApplianceActivity, recordInTenants, Tenants } from './tenants.ts';
import { SegmentVerifier, type VerifierSettings } from './threads/segments.ts';
import { Witness } from './witness.ts';

export interface ApplianceOptions {
  /** The data directory. */
  readonly data: string;
  readonly keyFile?: string | undefined;
  /** Where else the master key may come from. */
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** Where clients reach it; asked anew for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  readonly logger?: Logger;
  readonly onEvent?: (event: ApplianceEvent) => void;
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
  readonly people?: PeopleSettings;
  /** Scheduled backups and shipping. */
  readonly copies?: CopySettings | undefined;
  readonly metrics?: MetricsSettings | undefined;
  /** What it is served with, for doctor to look at. */
  readonly certificates?: CertificateFiles | undefined;
  /** Tenants by name, and `system`, that go on this once although their files are older than they were. */
  readonly acceptOlder?: readonly string[] | undefined;
  /** How the room on the disk is watched; looked at once when absent. */
  readonly space?: SpaceSettings | undefined;
  /** How the closed segments of the activity logs are looked after while it is served. */
  readonly segments?: Partial<VerifierSettings> | undefined;
  /** Opens it also where it was sealed on purpose, which ends that; for a process of its own alone. */
  readonly unseals?: boolean;
  /** By which it can be sealed from outside; absent where it cannot. */
  readonly sealing?: Sealing;
  /** Clock and randomness; the system's when absent. */
  readonly world?: World;
}

export interface OpenAppliance {
  readonly sealed: false;
  readonly files: Files;
  readonly app: App;
  /** A request from the administrator at this machine. */
  fetchLocal(request: Request): Promise<Response>;
  status(): Promise<OpenStatus>;
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

/** Opens what an opened seal has the keys of. The caller keeps the lock on the directory until all is closed. */
export async function openUnsealed(
  options: ApplianceOptions,
  opened: OpenedSeal,
  lock: Pick<DirectoryLock, 'needInPlace'>,
): Promise<OpenAppliance> {
  const data = resolve(options.data);
  // What is open, to be closed in reverse order.
  const open: (() => Promise<void> | void)[] = [];
  const closeAll = async (): Promise<void> => {
    for (let close = open.pop(); close; close = open.pop()) await close();
  };
  try {
    let space: SpaceGuard | undefined;
    const files = guardedFiles(
      filesInPlace(nodeFiles(data), () => lock.needInPlace()),
      async (bytes) => (await space?.full(bytes)) ?? false,
    );
    const seal = new SealKeeper(opened.seal, files);
    open.push(() => seal.wipe());
    const { world = systemWorld(), onEvent } = options;
    const metrics = new Metrics(world.now(), options.metrics);
    const stores: StoreWorld = {
      root: data,
      files,
      wasm: await sqlWasm(),
      needFreeSpace: async (bytes) => space?.needFreeSpace(bytes),
      onEvent: storeEvents(options.onEvent),
      counts: (dir) => metrics.store(dir),
      beforeMigration: backupBeforeMigration({ files, root: data, seal, now: world.now }, options.onEvent),
    };
    const read = await readStores(stores, seal, options.acceptOlder);
    open.push(() => read.discard());
    // Everything is read and sound: from here on files change.
    const guard = await SpaceGuard.open(data, options.space ?? {}, onEvent);
    space = guard;
    open.push(() => guard.close());
    // A crash right after an `init` can leave it behind.
    if (await files.exists(initMark)) await files.remove(initMark);
    const system = await read.system.open();
    open.push(() => system.close());
    const baseUrl = await address(system, options.baseUrl);
    const tenants = new Tenants();
    let closeWitness = async (): Promise<void> => {};
    open.push(async () => {
      for (const { handle } of tenants.all) await handle.store.close();
      await closeWitness();
    });
    const admin = new TenantAdmin({ stores, seal, system, tenants, world, baseUrl, onEvent });
    await admin.openAll(read.tenants);
    await acceptOlder({ system, tenants, read, world });
    sayAccepted(read, onEvent);
    await read.discard();
    const { now, random } = world;
    const mustWait = (): boolean => guard.refusal !== undefined;
    const keys = seal.keysFor(systemDir);
    const witness = new Witness({ files, keys, system, tenants, now, random, onEvent, mustWait }, read);
    if (read.accepted.length > 0) await witness.note();
    closeWitness = () => witness.close();
    // A command that is done in a moment notes what it did at its end.
    if (options.sealing) witness.start();
    const deps = { root: data, files, seal, system, tenants, admin, world };
    const copies = await openCopies(deps, options.copies ?? {}, options.onEvent);
    open.push(() => copies.close());
    const parts = { files, seal, system, tenants, world, admin, baseUrl, copies, space: guard, metrics, lock };
    return assemble(options, parts, open, closeAll);
  } catch (error) {
    await closeAll();
    throw systemError(error, data);
  }
}

function sayAccepted({ accepted, needless }: ReadStores, onEvent: ApplianceOptions['onEvent']): void {
  for (const { name, what, from, to } of accepted) {
    const outcome = `it goes on from transaction ${to}, and what came up to ${from} is lost`;
    onEvent?.({ level: 'warn', message: `--accept-older ${name}: ${what}; ${outcome}` });
  }
  for (const name of needless) {
    const advice = 'take it away, or an older copy is accepted one day';
    const message = `--accept-older ${name} has no effect, nothing of it is older than it was: ${advice}`;
    onEvent?.({ level: 'warn', message });
  }
}

/**
 * Where clients reach the appliance. What it was served under is remembered for whoever opens it without serving it.
 */
async function address(system: SystemStore, served: ApplianceOptions['baseUrl']): Promise<() => string> {
  const known = await system.peek(({ settings }) => settings.get('url'));
  if (!served) return () => known ?? 'http://kms.local';
  const url = served();
  if (url !== known) await system.transaction(({ settings }) => settings.set('url', url));
  return served;
}

/** What is open before there is an app. */
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
  readonly lock: Pick<DirectoryLock, 'needInPlace'>;
}

/** Puts the app over the opened parts; what it starts itself is added to `open`, which `closeAll` closes. */
function assemble(
  options: ApplianceOptions,
  { files, seal, system, tenants, world, admin, baseUrl, copies, space, metrics, lock }: Parts,
  open: (() => Promise<void> | void)[],
  closeAll: () => Promise<void>,
): OpenAppliance {
  const { logger = silentLogger, bodyLimit, onEvent, sealing } = options;
  const status = (): Promise<OpenStatus> =>
    applianceStatus(seal.current, system, tenants, copies.status(), space.status());
  const rekeying = new Rekeying({ seal, tenants, world, onEvent });
  // A command that is done in a moment leaves it to a server.
  if (sealing) rekeying.resume();
  const allStores = () => [system, ...tenants.all.map(({ handle }) => handle.store)];
  if (sealing || options.segments) {
    const keysFor = (name: string) => seal.keysFor(name);
    const verifier = new SegmentVerifier(
      { root: resolve(options.data), stores: allStores, keysFor, onEvent },
      options.segments,
    );
    verifier.start();
    open.push(() => verifier.close());
  }
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
      details: { ...copies.details(), ...diskDetails(space), ...activityDetails(allStores()) },
    }),
    refuseWrites: () => space.refusal,
    backup: () => copies.stream(),
    recordInOthers: (action, { tenant }) =>
      recordInTenants(tenants, world, { action, keyid: byOperator.by, props: {} }, tenant.id),
    meter: metrics.meter,
    metrics: ({ tenant, store }) =>
      metrics.text(tenant.id, tenants.dirOf(tenant.id), {
        store: store.status(),
        copies: copies.status(),
        space: space.status(),
      }),
    stateOf: ({ tenant, store }) =>
      `${seal.current.applianceId}.${tenant.id}.${copies.epoch.number}.${formatMark(store.mark)}`,
    ...(sealing && { sealing }),
    local: {
      applianceStatus: status,
      ...copies.local,
      examineAppliance: () =>
        examineServed({
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
      ...tenantHandlers(admin, rekeying, baseUrl),
      ...masterHandlers({ seal, tenants, world }),
      ...(sealing && { sealAppliance: () => sealLocally(sealing, tenants, world) }),
    },
  });
  const purge = async (): Promise<void> => {
    await admin.purge();
    for (const { handle } of tenants.all) await purgeExpired(handle.store, world);
  };
  let purging: Promise<void> = Promise.resolve();
  const purgeQuietly = (): void => {
    purging = purge().catch((cause: unknown) =>
      onEvent?.({ level: 'warn', message: 'deleted keyrings and tenants could not be erased', cause }),
    );
  };
  const timer = setInterval(purgeQuietly, day).unref();
  open.push(async () => {
    clearInterval(timer);
    await purging;
  });
  purgeQuietly();
  return {
    sealed: false,
    files,
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
async function sealLocally(sealing: Sealing, tenants: Tenants, world: World): Promise<SealStatus> {
  await recordInTenants(tenants, world, { action: 'system.seal', keyid: localCaller.id, props: {} });
  await sealing.seal();
  return sealing.status();
}
