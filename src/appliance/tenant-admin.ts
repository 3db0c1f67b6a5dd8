// Creating, changing, deleting, restoring and erasing tenants while the appliance serves the others. One operation runs
// at a time; each is recorded in the tenant's own activity log, and takes effect once it is in the appliance's own
// store, which also shows the changes of other nodes. Files and keys are created and removed so that after a crash at
// any step the next start can finish or clean up: it never removes anything that belongs to a tenant's record, or that
// was not marked as unfinished.
import { activityRecord } from '../core/activity.ts';
import { isOperatorTenant } from '../core/authorization.ts';
import type { Limits, World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { bootstrap } from '../core/set-up.ts';
import { toHex } from '../crypto/bytes.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { fieldsError, KmsError } from '../errors.ts';
import { type ActivityDetails, changedFields, type ResourceRef } from '../model/activity-details.ts';
import { operatorTenantStays } from '../model/flags.ts';
import { systemDir, tenantDir } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { needNotOlder } from '../storage/read-stores.ts';
import {
  type LimitChanges,
  limitsAfter,
  type ServedTenant,
  servedTenant,
  type TenantChanges,
  type Tenants,
  tenantThing,
} from '../storage/served-tenants.ts';
import { openTenantStore, readTenantStore, type StoreWorld, type SystemStore } from '../storage/stores.ts';
import type { ReadStore, Store, Tables } from '../store/port.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { TenantRecord, TenantTable } from '../store/tables/tenants.ts';

/** Milliseconds for which a deleted tenant can be restored. */
export const restorableFor = 30 * 24 * 60 * 60 * 1000;

interface TenantAdminDeps extends TenantFiles {
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly world: World;
  readonly baseUrl: () => string;
  readonly onEvent: ((event: ApplianceEvent) => void) | undefined;
}

interface NewTenantMade {
  readonly record: TenantRecord;
  readonly accountId: string;
  readonly apiKey: Awaited<ReturnType<typeof bootstrap>>['apiKey'];
}

/** The action of all these operations in the activity log; `props.operation` says which one. */
const action = 'system.tenant';

export class TenantAdmin {
  readonly #deps: TenantAdminDeps;
  readonly #queue = new SerialQueue();
  /** Stores of tenants that other nodes deleted while they were served here. */
  readonly #deleted = new Set<string>();

  constructor(deps: TenantAdminDeps) {
    this.#deps = deps;
  }

  /** Opens all tenants, from `read` if already read, after cleaning up what a crash left. */
  async openAll(read: ReadonlyMap<string, ReadStore<Tables>> = new Map()): Promise<void> {
    const records = await this.#records();
    await clearUnfinished(this.#deps, records, this.#deps.onEvent);
    for (const record of records) {
      if (record.deletedAt !== undefined) continue;
      this.#serve(record, await (read.get(record.dir)?.open() ?? openFiles(this.#deps, record.dir)));
    }
  }

  /**
   * Updates the served tenants from the appliance's own store, which other nodes may have changed; new tenants follow
   * soon.
   */
  async refresh(): Promise<void> {
    const { tenants } = this.#deps;
    const records = new Map((await this.#records()).map((record) => [record.id, record]));
    for (const { record, handle } of tenants.all) {
      const now = records.get(record.id);
      if (now && now.deletedAt === undefined) {
        if (JSON.stringify(now) !== JSON.stringify(record)) tenants.change(now);
        continue;
      }
      this.#deleted.add(record.dir);
      tenants.remove(record.id);
      handle.store.close().catch(() => {});
    }
    if (this.#missing([...records.values()]).length === 0) return;
    // Later: the caller has a store's turn, and opening another store takes long.
    void this.#queue.run(async () => {
      for (const record of this.#missing(await this.#records().catch(() => []))) await this.#join(record);
    });
  }

  #missing(records: readonly TenantRecord[]): readonly TenantRecord[] {
    const served = new Set(this.#deps.tenants.all.map(({ record }) => record.id));
    return records.filter(({ id, deletedAt }) => deletedAt === undefined && !served.has(id));
  }

  isDeleted(dir: string): boolean {
    return this.#deleted.has(dir);
  }

  /** Serves a tenant that another node created or restored. */
  async #join(record: TenantRecord): Promise<void> {
    const { name, dir } = record;
    try {
      this.#deleted.delete(dir);
      this.#serve(record, await openFiles(this.#deps, dir));
    } catch (cause) {
      // Retried at the next change of tenants, or at a restart.
      const message = `the tenant ${name}, which another node serves, could not be opened`;
      this.#deps.onEvent?.({ level: 'warn', message, cause });
    }
  }

  list(): Promise<readonly TenantRecord[]> {
    return this.#records();
  }

  /** By name or id; deleted tenants by id only. Throws `not-found`. */
  async find(nameOrId: string): Promise<TenantRecord> {
    const wanted = nameOrId.toLowerCase();
    const records = await this.#records();
    const found = records.find(
      ({ name, id, deletedAt }) => id === wanted || (name === wanted && deletedAt === undefined),
    );
    if (!found) throw new KmsError('not-found', 'there is no such tenant');
    return found;
  }

  create({ name, hosts }: { readonly name: string; readonly hosts: readonly string[] }): Promise<NewTenantMade> {
    return this.#queue.run(async () => {
      const { system, world } = this.#deps;
      needFree(await this.#records(), { name, hosts });
      const dir = toHex(world.random(8));
      const now = world.now();
      const id = world.newId('tenant');
      const { store, first } = await this.#makeStore(dir, { id, name, hosts });
      try {
        await system.transaction((tx) => {
          needFree(tx.tenants.all(), { name, hosts });
          tx.tenants.insert({ id, name, hosts, dir, limits: {}, createdAt: now, updatedAt: now });
        });
      } catch (error) {
        await store.close();
        // Another node was faster. After any other failure the record may exist all the same: the next start will see,
        // and keep or remove the files accordingly.
        if (error instanceof KmsError && error.code === 'conflict') await removeFiles(this.#deps, dir).catch(() => {});
        throw error;
      }
      const record = await this.find(id);
      this.#serve(record, store);
      // Otherwise the next start does it.
      await this.#deps.stores.place.finish(tenantDir(dir)).catch(() => {});
      return { record, accountId: first.account.id, apiKey: first.apiKey };
    });
  }

  update(nameOrId: string, changes: TenantChanges): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { record, handle } = await this.#served(nameOrId);
      if (changes.name !== undefined && changes.name !== record.name) needNotOperator(record, 'keeps its name');
      const after = { ...record, ...changes };
      needFree(await this.#records(), after, record.id);
      await this.#note(handle.store, after, 'update', { ...changes }, changedFields({ ...record }, { ...changes }));
      return this.#change(record, (now) => ({ ...now, ...changes }));
    });
  }

  /** @param plan the digest of the plan that the change belongs to. */
  limit(nameOrId: string, changes: LimitChanges, plan?: string): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { record, handle } = await this.#served(nameOrId);
      const said = { limits: changes, ...(plan !== undefined && { plan }) };
      await this.#note(handle.store, record, 'limits', said, ['limits']);
      // Cast: the core wrote this column.
      return this.#change(record, (now) => ({ ...now, limits: { ...limitsAfter(now.limits as Limits, changes) } }));
    });
  }

  /** Its name and hosts are free at once; files and keys stay for 30 days. */
  delete(nameOrId: string): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { tenants, system, world } = this.#deps;
      const { record, handle } = await this.#served(nameOrId);
      needNotOperator(record, 'cannot be deleted');
      const needAnother = (records: readonly TenantRecord[]): void => {
        if (records.some(({ id, deletedAt }) => id !== record.id && deletedAt === undefined)) return;
        throw new KmsError('conflict', `${record.name} is the only tenant`, { hint: 'make another one first' });
      };
      needAnother(await this.#records());
      await this.#note(handle.store, record, 'delete', {});
      const deleted = await system.transaction((tx) => {
        needAnother(tx.tenants.all());
        const after = { ...asExpected(tx.tenants, record), updatedAt: world.now(), deletedAt: world.now() };
        tx.tenants.update(after);
        return after;
      });
      tenants.remove(record.id);
      await handle.store.close();
      // From here on its log position is no longer noted; the last note may be a little behind.
      await system
        .transaction((tx) => tx.marks.set(record.dir, { ...handle.store.mark, at: world.now() }))
        .catch(() => {});
      return deleted;
    });
  }

  /** Restores a deleted tenant, under another name or other hosts if those are taken. */
  restore(id: string, changes: TenantChanges): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { world } = this.#deps;
      const record = (await this.#records()).find((each) => each.id === id);
      if (record?.deletedAt === undefined || isExpired(record, world.now())) {
        throw new KmsError('not-found', 'there is no deleted tenant of this id to restore');
      }
      const after = { ...record, ...changes, deletedAt: undefined };
      needFree(await this.#records(), after);
      this.#deleted.delete(record.dir);
      const store = await this.#openNotOlder(record);
      try {
        await this.#note(store, after, 'restore', { ...changes }, changedFields({ ...record }, { ...changes }));
        return await this.#change(record, (now) => ({ ...now, ...changes, deletedAt: undefined }), store);
      } catch (error) {
        await store.close();
        throw error;
      }
    });
  }

  /** Erases deleted tenants after 30 days: keys, then files, then the record. If cut off, the next purge continues. */
  purge(now: number): Promise<void> {
    return this.#queue.run(async () => {
      const { system, onEvent } = this.#deps;
      for (const record of await this.#records()) {
        if (!isExpired(record, now)) continue;
        await removeFiles(this.#deps, record.dir);
        await system.transaction((tx) => {
          tx.tenants.erase(record.id);
          tx.marks.erase(record.dir);
        });
        onEvent?.({
          level: 'info',
          message: `the tenant ${record.name} (${record.id}), deleted 30 days ago, is erased`,
        });
      }
    });
  }

  async #openNotOlder(record: TenantRecord): Promise<Store> {
    const { system, seal, stores } = this.#deps;
    const marks = await system.transaction((tables) => tables.marks.all());
    const read = await readTenantStore(stores, tenantDir(record.dir), seal.keysFor(record.dir));
    try {
      needNotOlder(read, record, marks, this.#deps.stores.place.whyOlder);
    } catch (error) {
      await read.discard();
      throw error;
    }
    return read.open();
  }

  /** Creates an empty store with the first account and key. If it fails, everything is removed again. */
  async #makeStore(dir: string, { id, ...props }: Pick<TenantRecord, 'id' | 'name' | 'hosts'>) {
    const { world } = this.#deps;
    let store: Store | undefined;
    try {
      store = await makeFiles(this.#deps, dir, world.now());
      const first = await store.transaction((tx) => {
        const made = bootstrap({ tx, world });
        const { account, apiKey } = made;
        const objects: readonly ResourceRef[] = [
          { type: 'account', id: account.id, name: account.uid },
          { type: 'apikey', id: apiKey.keyid },
        ];
        const object = tenantThing({ id, name: props.name });
        tx.record(this.#activity('create', props, { object, objects, granted: Object.keys(apiKey.flags) }));
        return made;
      });
      return { store, first };
    } catch (error) {
      await store?.close();
      await removeFiles(this.#deps, dir).catch(() => {});
      throw error;
    }
  }

  /** Applies `next` to the current record, provided that its deletion state is the one found. */
  async #change(found: TenantRecord, next: (now: TenantRecord) => TenantRecord, store?: Store): Promise<TenantRecord> {
    const { system, tenants, world } = this.#deps;
    const after = await system.transaction((tx) => {
      const record = { ...next(asExpected(tx.tenants, found)), updatedAt: world.now() };
      needFree(tx.tenants.all(), record, record.id);
      tx.tenants.update(record);
      return record;
    });
    if (!tenants.change(after) && store) this.#serve(after, store);
    return after;
  }

  #serve(record: TenantRecord, store: Store): void {
    const { tenants, seal, baseUrl } = this.#deps;
    tenants.put(servedTenant(record, seal.keysFor(record.dir), store, baseUrl));
  }

  async #served(nameOrId: string): Promise<ServedTenant> {
    const found = await this.find(nameOrId);
    const look = () => this.#deps.tenants.all.find(({ record }) => record.id === found.id);
    // Another node may have created it a moment ago.
    if (!look() && found.deletedAt === undefined) await this.#join(found);
    const served = look();
    if (!served)
      throw new KmsError('not-found', 'the tenant is deleted', { hint: 'bring it back with `kms tenant restore`' });
    return served;
  }

  /** Recorded before the change: if it cannot be recorded, it is not done. */
  async #note(
    store: Store,
    record: TenantRecord,
    operation: string,
    props: object,
    changed: readonly string[] = [],
  ): Promise<void> {
    const activity = this.#activity(operation, props, { object: tenantThing(record), changed });
    await store.transaction((tx) => tx.record(activity));
  }

  #activity(operation: string, props: object, deed: ActivityDetails) {
    const { world } = this.#deps;
    return activityRecord(world, { keyid: localCaller.id, action, props: { operation, ...props }, deed });
  }

  #records(): Promise<TenantRecord[]> {
    return this.#deps.system.transaction((tables) => tables.tenants.all());
  }

  /** Runs while no tenant is created, changed, deleted, restored or erased. */
  exclusively<R>(run: () => Promise<R>): Promise<R> {
    return this.#queue.run(run);
  }
}

/** Throws `conflict` if another tenant has the name or a host. */
function needFree(
  records: readonly TenantRecord[],
  { name, hosts }: Pick<TenantRecord, 'name' | 'hosts'>,
  except?: string,
): void {
  for (const other of records) {
    if (other.deletedAt !== undefined || other.id === except) continue;
    if (other.name === name) throw taken('name', 'another tenant has this name');
    const host = hosts.find((each) => other.hosts.includes(each));
    if (host !== undefined) throw taken('hosts', `the tenant ${other.name} lists ${host} already`);
  }
}

/** The current record. Throws `conflict` if another node deleted or restored it in the meantime. */
function asExpected(tenants: Pick<TenantTable, 'byId'>, { id, name, deletedAt }: TenantRecord): TenantRecord {
  const now = tenants.byId(id);
  if (now && (now.deletedAt === undefined) === (deletedAt === undefined)) return now;
  throw new KmsError('conflict', `the tenant ${name} was changed on another node meanwhile`, { hint: 'look again' });
}

function isExpired({ deletedAt }: TenantRecord, now: number): boolean {
  return deletedAt !== undefined && deletedAt <= now - restorableFor;
}

/** Protects the operator's tenant: the next owner of its name would get control of the appliance. */
function needNotOperator(record: TenantRecord, what: string): void {
  if (!isOperatorTenant(record)) return;
  throw new KmsError('conflict', operatorTenantStays(record.name, what));
}

function taken(field: 'name' | 'hosts', message: string): KmsError {
  return fieldsError('conflict', [{ field, message }]);
}

interface TenantFiles {
  readonly stores: StoreWorld;
  readonly seal: SealKeeper;
}

/** Creates directory, keys and an empty store, all marked unfinished until `finish`. */
async function makeFiles({ stores, seal }: TenantFiles, dir: string, now: number): Promise<Store> {
  await stores.place.begin(tenantDir(dir));
  await seal.change((current) => current.withStore(dir));
  await stores.place.create(tenantDir(dir), seal.keysFor(dir), now);
  return openFiles({ stores, seal }, dir);
}

function openFiles({ stores, seal }: TenantFiles, dir: string): Promise<Store> {
  return openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
}

/** Removes keys and files, the keys first: from then on the files are unreadable. */
async function removeFiles({ stores, seal }: TenantFiles, dir: string): Promise<void> {
  // Written even if there is no key: a step that failed may have left one in the seal file.
  await seal.change((current) => current.withoutStore(dir));
  await stores.place.remove(tenantDir(dir));
}

/** Removes tenants whose creation a crash cut off, or finishes them if their record exists. */
async function clearUnfinished(
  tenantFiles: TenantFiles,
  records: readonly TenantRecord[],
  onEvent: ((event: ApplianceEvent) => void) | undefined,
): Promise<void> {
  const { stores, seal } = tenantFiles;
  const { place } = stores;
  const known = new Set(records.map(({ dir }) => dir));
  const present = await place.list();
  for (const { name: dir, state } of present) {
    if (known.has(dir)) {
      if (state !== 'whole') await place.finish(tenantDir(dir));
    } else if (state === 'unfinished') {
      await removeFiles(tenantFiles, dir);
      onEvent?.({
        level: 'warn',
        message: `${tenantDir(dir)}: removed what was left of a tenant that was never finished`,
      });
    } else if (state === 'whole') {
      onEvent?.({ level: 'warn', message: `tenants/${dir}: belongs to no tenant; it is left as it is` });
    }
  }
  const here = new Set(present.map(({ name }) => name));
  for (const dir of seal.current.stores) {
    if (dir === systemDir || known.has(dir) || here.has(dir)) continue;
    onEvent?.({ level: 'warn', message: `${tenantDir(dir)}: the seal has keys for it, but there is no such tenant` });
  }
}
