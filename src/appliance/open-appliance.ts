// An appliance with its keys: its data (seal, stores, tenants), and the services over them (copies, background work,
// the app's operations). They are opened in order, each on those before it, and closed in reverse.

import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { OpenStatus } from '../api/local/status.ts';
import type { SealStatus } from '../api/system.ts';
import { needNoFence, takeBack } from '../backup/fence.ts';
import { type Copies, type CopySettings, openCopies, type Stopping } from '../backup/service.ts';
import { livesShippedTo, shippedTo } from '../backup/ship.ts';
import { backupBeforeMigration } from '../backup/write.ts';
import type { HeldDirectory } from '../cluster/held-directory.ts';
import type { SharedEvents, SharedStores } from '../cluster/shared-stores.ts';
import { byOperator } from '../core/authorization.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { purgeExpired } from '../core/keyrings.ts';
import type { KeySources } from '../custody/key-sources.ts';
import { SealKeeper, type SealPlace, sealInFiles } from '../custody/seal-keeper.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import type { CertificateFiles } from '../doctor/keys.ts';
import { examineServed } from '../doctor/served.ts';
import { KmsError, systemError } from '../errors.ts';
import type { Logger, OpenState, Sealing } from '../http/appliance-port.ts';
import type { Kem } from '../model/kems.ts';
import { formatMark } from '../model/store-mark.ts';
import { epochIn, initMark, shipToIn, systemDir } from '../platform/data-dir.ts';
import { type ApplianceEvent, storeEvents } from '../platform/events.ts';
import { foreignFiles } from '../platform/foreign-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { guardedFiles, SpaceGuard, type SpaceSettings } from '../platform/space-guard.ts';
import type { StoreSource } from '../platform/store-url.ts';
import { SegmentVerifier, type VerifierSettings } from '../platform/threads/segments.ts';
import type { Seal } from '../seal/seal.ts';
import type { Slot } from '../seal/slot.ts';
import { Aging } from '../storage/aging.ts';
import { acceptOlder, type ReadStores, readStores, reportAccepted } from '../storage/read-stores.ts';
import { type ApplianceActivity, noAddress, recordInTenants, Tenants } from '../storage/served-tenants.ts';
import type { StoreWorld, SystemStore } from '../storage/stores.ts';
import { Witness } from '../storage/witness.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { NotedMark } from '../store/tables/marks.ts';
import { Metrics, type MetricsSettings } from '../telemetry/metrics/metrics.ts';
import { Retention, type RetentionSettings } from '../telemetry/retention.ts';
import { openStreaming, type StreamingSettings } from '../telemetry/streaming/streaming.ts';
import { type PeopleSettings, ServedPeople } from './mail.ts';
import { masterHandlers } from './master-handlers.ts';
import { Rekeying } from './rekey.ts';
import { activityDetails, applianceStatus, diskDetails, readiness } from './status.ts';
import { TenantAdmin } from './tenant-admin.ts';
import { tenantHandlers } from './tenant-handlers.ts';

/** Configuration that may change while the appliance is open; of `copies` only the schedule. */
export interface LiveConfig {
  /** Largest request body, in bytes. */
  readonly bodyLimit?: number | undefined;
  /** Lifetimes of sessions, invites and resets, and the mail server. */
  readonly people?: PeopleSettings | undefined;
  /** Scheduled backups and shipping. */
  readonly copies?: CopySettings | undefined;
  /** Targets of streamed activity. */
  readonly streaming?: StreamingSettings | undefined;
  /** How long activity is kept. Default: for ever. */
  readonly retention?: RetentionSettings | undefined;
  /** Certificate files that it is served with, for doctor. */
  readonly certificates?: CertificateFiles | undefined;
  /** Networks of addresses that may use Tang. Default: the usual ones. */
  readonly tangAllow?: readonly string[] | undefined;
}

/** Configuration of an appliance, without that of its server. */
export interface ApplianceConfig extends LiveConfig {
  /** The data directory; with `store`, that of this node. */
  readonly data: string;
  /** The database of an appliance shared by several nodes. */
  readonly store?: StoreSource | undefined;
  readonly keyFile?: string | undefined;
  /** Key wrapping of new rings that don't specify one. Default: `x25519`. */
  readonly defaultKem?: Kem | undefined;
  readonly metrics?: MetricsSettings | undefined;
  /** Tenants by name, and `system`, that are opened this once although their files are older than noted. */
  readonly acceptOlder?: readonly string[] | undefined;
  /** Serves it this once although a standby took over. */
  readonly takeBack?: boolean | undefined;
}

export interface ApplianceOptions extends ApplianceConfig {
  /** Other sources of the master key. */
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** The address for clients; called for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  /** The address on which this process listens. */
  readonly address?: string;
  readonly logger?: Logger;
  readonly onEvent?: (event: ApplianceEvent) => void;
  /** How the disk space is watched. Default: checked once. */
  readonly space?: SpaceSettings | undefined;
  /** Verification of closed activity log segments while it is served. */
  readonly segments?: Partial<VerifierSettings> | undefined;
  /** Opens it even if it is sealed on purpose, which ends that; only for a process of its own. */
  readonly unseals?: boolean;
  /** The end of an upgrade's trial: data leave the directory, and are removed, only after it. */
  readonly held?: Promise<void> | undefined;
  /** Called with the reason for a long wait before it opens. */
  readonly onWaiting?: ((reason: string) => void) | undefined;
  /** Aborts that wait. */
  readonly stopping?: AbortSignal | undefined;
  /** Clock and randomness. Default: the system's. */
  readonly world?: World;
  /** Milliseconds of a monotonic clock. Default: the process's. */
  readonly uptime?: () => number;
}

/** Properties of a held data directory, open or not. */
interface Holder {
  readonly directory: HeldDirectory;
  readonly world: World;
  readonly sealing: Sealing;
  readonly stopping: Stopping;
  /** Whether it runs until it is told to end. A short command leaves long work to a server. */
  readonly serves: boolean;
  /** Called for changes made by other nodes. */
  readonly elsewhere: SharedEvents;
  /** Log positions of the stores when they were last open in this process: an older store is not opened again. */
  readonly known: Map<string, NotedMark>;
}

/** The open state of an appliance, for the app and for the process around it. */
export interface Unsealed extends OpenState {
  readonly seal: SealPlace;
  /** Takes over the seal under a new master key, rotated on another node. */
  adopt(seal: Seal): Promise<void>;
  status(): Promise<OpenStatus>;
  /** Backups and shipping, and their status for `/readyz`, metrics and doctor. */
  readonly copies: Pick<Copies, 'status' | 'backUpNow'>;
  /** Custodians of the master key. */
  custodians(): readonly Slot[];
  /** Adds a record to the log of every tenant. */
  record(activity: ApplianceActivity): Promise<void>;
  /** Applies new settings, one change at a time. Waits for a running backup. */
  reconfigure(config: LiveConfig): Promise<void>;
  /** Ends long work that changes nothing, as it is about to be closed. */
  giveUp(): void;
  /** Waits for work under way, makes it durable, wipes the keys and closes the files. */
  close(): Promise<void>;
}

type End = () => Promise<void> | void;

/** Closing functions of all open parts, run in reverse order. */
class Ends {
  readonly #ends: End[] = [];
  #isOver = false;

  push(end: End): void {
    this.#ends.push(end);
  }

  /** Starts something once `held` is over, unless everything has ended by then. */
  starting(held: Promise<void> | undefined): (start: () => void) => void {
    if (!held) return (start) => start();
    return (start) => void held.then(() => this.#isOver || start());
  }

  async all(): Promise<void> {
    this.#isOver = true;
    for (let end = this.#ends.pop(); end; end = this.#ends.pop()) await end();
  }
}

/** Opens everything that the seal has keys for. The caller holds the lock on the directory until all is closed. */
export async function openUnsealed(options: ApplianceOptions, opened: OpenedSeal, holder: Holder): Promise<Unsealed> {
  const ends = new Ends();
  try {
    const data = await openData(options, opened, holder, ends);
    return await openServices(options, data, holder, ends);
  } catch (error) {
    await ends.all();
    throw systemError(error, resolve(options.data));
  }
}

/** The opened data: files, keys and stores. */
interface OpenData {
  /** The data directory. */
  readonly root: string;
  readonly files: Files;
  readonly sealPlace: SealPlace;
  readonly seal: SealKeeper;
  readonly shared: SharedStores | undefined;
  readonly space: SpaceGuard;
  readonly metrics: Metrics;
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly admin: TenantAdmin;
  readonly baseUrl: () => string;
}

async function openData(
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
  const shared = node && new (await import('../cluster/shared-stores.ts')).SharedStores(node, seal, elsewhere);
  const backUp = backupBeforeMigration({ files, shared, root, seal, now }, onEvent);
  const stores: StoreWorld = {
    root,
    files,
    shared,
    wasm: await sqlWasm(),
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
    ...(!shared && { needFreeSpace: async (bytes: number) => guard?.needFreeSpace(bytes) }),
  };
  const read = await readStores(stores, seal, options.acceptOlder, known);
  ends.push(() => read.discard());
  const shipping = placesShippedTo(options, root, read.system);
  const shippedIn = (epoch: number) => shipping.all.map((to) => shippedTo(to, seal.current, epoch));
  const takesBack = options.takeBack ?? false;
  const fenced = shared ? undefined : await needNoFence({ files, shipped: shippedIn(epochIn(read.system)), takesBack });
  // Everything is read and sound: files change only from here on.
  const space = await SpaceGuard.open(root, shared ? unwatched : (options.space ?? {}), onEvent);
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
  let closeWitness = async (): Promise<void> => {};
  ends.push(async () => {
    for (const { handle } of tenants.all) await handle.store.close();
    await closeWitness();
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
  const witness = new Witness({ files, keys, system, tenants, now, random, onEvent, mustWait }, read);
  if (read.accepted.length > 0) await witness.note();
  noteNow = () => witness.try();
  closeWitness = async () => {
    await witness.close();
    for (const [dir, mark] of witness.known) known.set(dir, mark);
  };
  // It also notes the positions at its end.
  if (serves) witness.start();
  return { root, files, sealPlace, seal, shared, space, metrics, system, tenants, admin, baseUrl };
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

/** The services over the data: copies, background work, and the app's operations. */
async function openServices(
  options: ApplianceOptions,
  data: OpenData,
  { directory, world, sealing, stopping, serves }: Holder,
  ends: Ends,
): Promise<Unsealed> {
  const { onEvent } = options;
  let config: LiveConfig = options;
  const { node } = directory;
  const { root, seal, space, metrics, system, tenants, admin, baseUrl } = data;
  const whenFree = ends.starting(options.held);
  const closing = new AbortController();
  const giveUp = (): void =>
    closing.abort(
      new KmsError('unavailable', 'the appliance is closing', { hint: 'ask again when it is open', retryAfter: 1 }),
    );
  const copies = await openCopies(
    { ...data, world, stopping, closing: closing.signal },
    options.copies ?? {},
    onEvent,
    whenFree,
  );
  ends.push(() => copies.close());
  data.shared?.follow({
    async refresh() {
      await admin.refresh();
      await copies.refresh();
    },
    isDeleted: (name) => admin.isDeleted(name),
  });
  const mustWait = (): boolean => space.refusal !== undefined;
  const streaming = await openStreaming(
    { root, system, tenants, now: world.now, onEvent, mustWait, whenFree },
    options.streaming,
  );
  ends.push(() => streaming.close());
  const { uptime = () => performance.now() } = options;
  const aging = new Aging({ system, tenants, world, uptime, mustWait, onEvent: serves ? onEvent : undefined });
  aging.start();
  ends.push(() => aging.close());
  const retention = new Retention({ tenants, world, aging, streaming, onEvent, mustWait }, options.retention);
  whenFree(() => retention.start());
  ends.push(() => retention.close());
  const rekeying = new Rekeying({ seal, tenants, world, onEvent });
  if (serves) rekeying.resume();
  const stores = () => [system, ...tenants.all.map(({ handle }) => handle.store)];
  let verifier: SegmentVerifier | undefined;
  if (serves || options.segments) {
    const { shared } = data;
    const verified = {
      root,
      stores,
      keysFor: (name: string) => seal.keysFor(shared?.nameOf(name) ?? name),
      ...(shared && { read: (path: string, most: number) => shared.engine.files.read(path, most) }),
      onEvent,
    };
    verifier = new SegmentVerifier(verified, options.segments);
    verifier.start();
    ends.push(() => verifier?.close());
  }
  const people = new ServedPeople(world, options.people, () => directory.nodes);
  ends.push(() => people.close());
  whenFree(() => ends.push(startPurging(data, aging, onEvent)));
  const status = async (): Promise<OpenStatus> => {
    const clock = await aging.doubt();
    return applianceStatus(seal.current, system, tenants, {
      ...(clock && { clock }),
      ...(node && { shared: await node.status() }),
      copies: copies.status(),
      activityTo: streaming.status(),
      ...(retention.status && { activityRetention: retention.status }),
      disk: space.status(),
    });
  };
  const changes = new SerialQueue();
  ends.push(() => changes.idle());
  const reconfigure = async (next: LiveConfig): Promise<void> => {
    // While it closes, nothing must start again.
    if (closing.signal.aborted) return;
    config = next;
    people.settings = next.people ?? {};
    retention.settings = next.retention;
    await streaming.change(next.streaming);
    await copies.reschedule(next.copies?.scheduled);
  };
  // One at a time: each holds a copy of all stores.
  const examinations = new SerialQueue();
  return {
    sealed: false,
    tenants,
    get baseUrl() {
      return baseUrl();
    },
    get people() {
      return people.current;
    },
    meter: metrics.meter,
    local: {
      applianceStatus: status,
      sealAppliance: () => sealLocally(sealing, tenants, world),
      examineAppliance: () =>
        examinations.run(() =>
          examineServed({
            ...data,
            verifier,
            copies,
            streaming,
            certificates: config.certificates ?? {},
            tangAllow: config.tangAllow ?? [],
            now: world.now,
            closing: closing.signal,
            node,
          }),
        ),
      ...copies.local,
      ...tenantHandlers(admin, rekeying, baseUrl),
      ...masterHandlers({ seal, tenants, world }),
    },
    readiness: () => ({
      ...readiness(system, tenants, space, directory),
      details: { ...copies.details(), ...diskDetails(space), ...activityDetails(stores()) },
    }),
    refuseWrites: () => space.refusal,
    backup: () => copies.stream(),
    backups: () => copies.backups(),
    startBackup: () => copies.startBackup(),
    recordInOthers: (action, { tenant }) =>
      recordInTenants(tenants, world, { action, keyid: byOperator.by, props: {} }, tenant.id),
    metrics: ({ tenant, store }) =>
      metrics.text(tenant.id, tenants.dirOf(tenant.id), {
        store: store.status(),
        copies: copies.status(),
        streams: streaming.status(),
        retention: retention.status,
        space: space.status(),
        nodes: node?.nodes?.count,
      }),
    stateOf: ({ tenant, store }) =>
      `${seal.current.applianceId}.${tenant.id}.${copies.epoch.number}.${formatMark(store.mark)}`,
    seal: data.sealPlace,
    adopt: (opened) => seal.adopt(opened),
    status,
    copies,
    custodians: () => seal.current.slots,
    record: (activity) => recordInTenants(tenants, world, activity),
    reconfigure: (next) => changes.run(() => reconfigure(next)),
    giveUp,
    close: () => {
      giveUp();
      return ends.all();
    },
  };
}

const day = 24 * 60 * 60 * 1000;

/** Erases expired deletions now and once a day; the returned function ends that. */
function startPurging({ admin, tenants }: OpenData, aging: Aging, onEvent: ApplianceOptions['onEvent']): End {
  const purge = async (): Promise<void> => {
    const now = await aging.now();
    await admin.purge(now);
    for (const { handle } of tenants.all) await purgeExpired(handle.store, now);
  };
  let purging: Promise<void> = Promise.resolve();
  const purgeQuietly = (): void => {
    purging = purge().catch((cause: unknown) =>
      onEvent?.({ level: 'warn', message: 'deleted keyrings and tenants could not be erased', cause }),
    );
  };
  const timer = setInterval(purgeQuietly, day).unref();
  purgeQuietly();
  return async () => {
    clearInterval(timer);
    await purging;
  };
}

/** Seals for the administrator at the machine, whose request has no tenant. */
async function sealLocally(sealing: Sealing, tenants: Tenants, world: World): Promise<SealStatus> {
  await recordInTenants(tenants, world, { action: 'system.seal', keyid: localCaller.id, props: {} });
  await sealing.seal();
  return sealing.status();
}
