// SharedStores are the stores of an appliance that is open on one of several nodes: made, held and erased in the
// database. Each turn of a store also shows what other nodes did, such as a seal, a rotated master key or a deleted
// tenant.
import { systemRandom } from '../crypto/random.ts';
import { RotatedElsewhere, type SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import { sealedError } from '../http/admission.ts';
import { sealName, systemDir } from '../platform/data-dir.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type {
  Elsewhere,
  ListedStore,
  PlacedOptions,
  StoreAtRest,
  StorePlace,
  TenantsHere,
} from '../storage/store-place.ts';
import type { CheckpointJob } from '../store/checkpoint.ts';
import type { ReadStore } from '../store/port.ts';
import type { Control, SharedEngine } from '../store/shared/engine.ts';
import { holdAtRest } from '../store/shared/hold.ts';
import { createShared, readShared } from '../store/shared/row-journal.ts';
import { uidLength } from '../store/store-files.ts';
import type { SharedNode } from './shared-node.ts';

/** Milliseconds after which a store that is not whole counts as left from an interruption. */
const unfinishedFor = 10 * 60_000;

/** Called when a turn of a store shows an action of another node. */
export interface SharedEvents {
  /** The appliance was sealed on purpose. */
  sealed(): void;
  /** The seal in force is under a master key that this node does not know yet. */
  rotated(): void;
}

/** The stores of an appliance that is open on this node. */
export class SharedStores implements StorePlace {
  readonly whyOlder =
    'the database was put back, or lost commits in a failover: deleted keys and revoked credentials would be alive ' +
    'again; find the newer one, or restore a backup';
  // A joining node has none yet.
  readonly hasNotes = false;
  readonly elsewhere: Elsewhere;
  readonly engine: SharedEngine;
  readonly #node: SharedNode;
  readonly #seal: SealKeeper;
  readonly #events: SharedEvents;
  /** Names of the stores that were read, by their ids. */
  readonly #names = new Map<string, string>();
  #tenants: TenantsHere | undefined;
  /** The last row of the appliance's own store when the tenants were last refreshed. */
  #systemSeq: number | undefined;
  #refreshing: Promise<void> = Promise.resolve();

  constructor(node: SharedNode, seal: SealKeeper, events: SharedEvents) {
    this.engine = node.engine;
    this.#node = node;
    this.#seal = seal;
    this.#events = events;
    this.elsewhere = {
      nameOf: (store) => this.#names.get(store),
      read: (path, most) => this.engine.files.read(path, most),
    };
  }

  follow(tenants: TenantsHere): void {
    this.#tenants = tenants;
  }

  /** Nothing to do: a store counts as unfinished from its first row on. */
  async begin(): Promise<void> {}

  create(dir: string, keys: TenantKeys): Promise<void> {
    const { engine } = this;
    return createShared({ engine, uid: systemRandom(uidLength), keys, random: systemRandom, name: sealName(dir) });
  }

  /** Holds the store of a deleted tenant; undefined if it is erased already. */
  async atRest(dir: string, counted: boolean): Promise<StoreAtRest | undefined> {
    const found = await this.#find(dir);
    if (!found?.isWhole) return undefined;
    const { engine } = this;
    const later = (milliseconds: number, run: () => void): void => void setTimeout(run, milliseconds).unref();
    const keys = this.#seal.keysFor(sealName(dir));
    const uid = Uint8Array.fromHex(found.store);
    const runCheckpoint = (job: CheckpointJob) => this.#node.checkpoint(found.store, keys, job);
    const world = { engine, uid, keys, random: systemRandom, later, holdMs: 60_000, runCheckpoint };
    const hold = await holdAtRest(world, dir, counted);
    return { uid, files: hold.files, hold };
  }

  async finish(dir: string): Promise<void> {
    const found = await this.#find(dir);
    if (found && !found.isWhole) await this.engine.finish(found.store);
  }

  async remove(dir: string): Promise<void> {
    const found = await this.#find(dir);
    if (found) await this.engine.erase(found.store);
  }

  async list(): Promise<readonly ListedStore[]> {
    const stores = (await this.engine.stores()).filter(({ name }) => name !== systemDir);
    return stores.map(({ name, isWhole, age }) => ({
      name,
      state: isWhole ? 'whole' : age > unfinishedFor ? 'unfinished' : 'under way',
    }));
  }

  async read<T extends object>(
    dir: string,
    keys: TenantKeys,
    { timed, turnMeter, ...options }: PlacedOptions<T>,
  ): Promise<ReadStore<T>> {
    const found = await this.#find(dir);
    if (!found) {
      throw new KmsError('corrupt', `there is no store ${sealName(dir)} in the database`, {
        hint: 'restore the appliance from a backup',
      });
    }
    this.#names.set(found.store, sealName(dir));
    return readShared({
      ...options,
      tables: (sql) => options.tables(sql),
      meter: turnMeter(),
      engine: this.engine,
      dir,
      uid: Uint8Array.fromHex(found.store),
      hasOwnConnection: dir === systemDir,
      keys,
      runCheckpoint: (job) => timed(() => this.#node.checkpoint(found.store, keys, job)),
      onTurnStart: (control) => this.#onTurnStart(sealName(dir), control),
      beforeRecovery: () => this.#seal.refresh(),
    });
  }

  async #find(dir: string) {
    const name = sealName(dir);
    return (await this.engine.stores()).find((each) => each.name === name);
  }

  /** Runs in each turn; a mere comparison unless something changed. */
  #onTurnStart(name: string, control: Control): Promise<void> | undefined {
    // The system store serves no requests and must still be writable while sealing.
    const mustSeal = control.isSealed && !this.#node.isUnsealing && name !== systemDir;
    const isCurrent = name === systemDir || !this.#tenants || control.systemSeq === this.#systemSeq;
    const isDeleted = this.#tenants?.isDeleted(name) ?? false;
    if (!mustSeal && !isDeleted && isCurrent && control.sealVersion === this.#seal.version) return undefined;
    return this.#learn(name, control, mustSeal);
  }

  async #learn(name: string, { sealVersion, systemSeq }: Control, mustSeal: boolean): Promise<void> {
    // Checked again: the turn may be from before an unsealing that has just ended.
    if (mustSeal && (await this.#node.seal.isOnPurpose())) {
      this.#events.sealed();
      throw sealedError;
    }
    if (sealVersion !== this.#seal.version) await this.#refreshSeal();
    if (name === systemDir) return;
    await this.#refreshTenants(systemSeq);
    if (!this.#tenants?.isDeleted(name)) return;
    // Requests of that tenant are answered as if it had been deleted before them.
    throw new KmsError('unavailable', 'the tenant was deleted on another node', { retryAfter: 1 });
  }

  async #refreshSeal(): Promise<void> {
    try {
      await this.#seal.refresh();
    } catch (cause) {
      if (cause instanceof RotatedElsewhere) this.#events.rotated();
      throw cause;
    }
  }

  /** One refresh at a time, and none that another turn has just done. */
  #refreshTenants(systemSeq: number): Promise<void> {
    const run = async (): Promise<void> => {
      if (!this.#tenants || systemSeq === this.#systemSeq) return;
      await this.#tenants.refresh();
      this.#systemSeq = systemSeq;
    };
    const mine = this.#refreshing.then(run);
    this.#refreshing = mine.catch(() => {});
    return mine;
  }
}
