// Making, changing, deleting, restoring and erasing tenants while the appliance serves the others. One operation runs
// at a time; each is recorded in the tenant's own activity log, and counts once the appliance's own store has it. Files
// and keys are made and removed so that a crash at any step leaves what the next start can finish or clear away:
// nothing is ever removed that a tenant's record stands for, nor what was not marked as unfinished.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { activityRecord } from '../core/activity.ts';
import { isOperatorTenant } from '../core/authorization.ts';
import type { Limits, World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { bootstrap } from '../core/set-up.ts';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { fieldsError, KmsError, systemCode } from '../errors.ts';
import { changedFields, type Deed, type Thing } from '../model/deed.ts';
import type { ReadStore } from '../store/embedded.ts';
import type { Store, Tables } from '../store/port.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import { systemDir, tenantDir } from './data-dir.ts';
import type { ApplianceEvent } from './events.ts';
import { needNotOlder } from './read-stores.ts';
import type { SealKeeper } from './seal-keeper.ts';
import { createStore, openTenantStore, readTenantStore, type StoreWorld, type SystemStore } from './stores.ts';
import {
  type LimitChanges,
  limitsAfter,
  type ServedTenant,
  servedTenant,
  type TenantChanges,
  type Tenants,
  tenantThing,
} from './tenants.ts';

/** How long a deleted tenant can be brought back, in milliseconds. */
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

/** The action of all of them in the activity log; `props.operation` says which one it was. */
const action = 'system.tenant';

export class TenantAdmin {
  readonly #deps: TenantAdminDeps;
  readonly #queue = new SerialQueue();

  constructor(deps: TenantAdminDeps) {
    this.#deps = deps;
  }

  /** Opens all tenants, those that were read from there, after clearing away what a crash left. */
  async openAll(read: ReadonlyMap<string, ReadStore<Tables>> = new Map()): Promise<void> {
    const records = await this.#records();
    await clearUnfinished(this.#deps, records, this.#deps.onEvent);
    for (const record of records) {
      if (record.deletedAt !== undefined) continue;
      this.#serve(record, await (read.get(record.dir)?.open() ?? openFiles(this.#deps, record.dir)));
    }
  }

  list(): Promise<readonly TenantRecord[]> {
    return this.#records();
  }

  /** By name or id; deleted ones by id alone. Throws `not-found`. */
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
      await this.#needFree({ name, hosts });
      const dir = toHex(world.random(8));
      const now = world.now();
      const id = world.newId('tenant');
      const { store, first } = await this.#makeStore(dir, { id, name, hosts });
      try {
        await system.transaction((tx) =>
          tx.tenants.insert({ id, name, hosts, dir, limits: {}, createdAt: now, updatedAt: now }),
        );
      } catch (error) {
        // Whether the record got to the disk is for the next start to see: it keeps or removes the files accordingly.
        await store.close();
        throw error;
      }
      const record = await this.find(id);
      this.#serve(record, store);
      // The next start does it otherwise.
      await finishFiles(this.#deps, dir).catch(() => {});
      return { record, accountId: first.account.id, apiKey: first.apiKey };
    });
  }

  update(nameOrId: string, changes: TenantChanges): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { record, handle } = await this.#served(nameOrId);
      if (changes.name !== undefined && changes.name !== record.name) needNotOperator(record, 'keeps its name');
      const after = { ...record, ...changes, updatedAt: this.#deps.world.now() };
      await this.#needFree(after, record.id);
      await this.#note(handle.store, after, 'update', { ...changes }, changedFields({ ...record }, { ...changes }));
      return this.#change(after);
    });
  }

  limit(nameOrId: string, changes: LimitChanges): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { record, handle } = await this.#served(nameOrId);
      const limits: Limits = limitsAfter(handle.tenant.limits, changes);
      await this.#note(handle.store, record, 'limits', { limits: changes }, ['limits']);
      return this.#change({ ...record, limits: { ...limits }, updatedAt: this.#deps.world.now() });
    });
  }

  /** Its name and hosts are free at once; files and keys stay for 30 days. */
  delete(nameOrId: string): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { tenants, system, world } = this.#deps;
      const { record, handle } = await this.#served(nameOrId);
      needNotOperator(record, 'cannot be deleted');
      if (tenants.all.length === 1) {
        throw new KmsError('conflict', `${record.name} is the only tenant`, { hint: 'make another one first' });
      }
      await this.#note(handle.store, record, 'delete', {});
      const deleted = { ...record, updatedAt: world.now(), deletedAt: world.now() };
      await system.transaction((tx) => tx.tenants.update(deleted));
      tenants.remove(record.id);
      await handle.store.close();
      // Nobody notes it any more from here on; what was noted last may be a little behind.
      await system
        .transaction((tx) => tx.marks.set(record.dir, { ...handle.store.mark, at: world.now() }))
        .catch(() => {});
      return deleted;
    });
  }

  /** Brings a deleted one back, under another name or other hosts where those are taken. */
  restore(id: string, changes: TenantChanges): Promise<TenantRecord> {
    return this.#queue.run(async () => {
      const { world } = this.#deps;
      const record = (await this.#records()).find((each) => each.id === id);
      if (record?.deletedAt === undefined || isExpired(record, world.now())) {
        throw new KmsError('not-found', 'there is no deleted tenant of this id to restore');
      }
      const after = { ...record, ...changes, updatedAt: world.now(), deletedAt: undefined };
      await this.#needFree(after);
      const store = await this.#openNotOlder(record);
      try {
        await this.#note(store, after, 'restore', { ...changes }, changedFields({ ...record }, { ...changes }));
        return await this.#change(after, store);
      } catch (error) {
        await store.close();
        throw error;
      }
    });
  }

  /**
   * Erases the deleted tenants whose 30 days are over: keys, then files, then the record. Cut off, the next one goes on
   * with it.
   */
  purge(now: number): Promise<void> {
    return this.#queue.run(async () => {
      const { system, onEvent } = this.#deps;
      for (const record of await this.#records()) {
        if (!isExpired(record, now)) continue;
        await removeFiles(this.#deps, record.dir);
        await system.transaction(async (tx) => {
          await tx.tenants.erase(record.id);
          await tx.marks.erase(record.dir);
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
    const marks = await system.peek((tables) => tables.marks.all());
    const read = await readTenantStore(stores, tenantDir(record.dir), seal.keysFor(record.dir));
    try {
      needNotOlder(read, record, marks);
    } catch (error) {
      await read.discard();
      throw error;
    }
    return read.open();
  }

  /** An empty store with the first account and key in it. Takes everything back when it fails. */
  async #makeStore(dir: string, { id, ...props }: Pick<TenantRecord, 'id' | 'name' | 'hosts'>) {
    const { world } = this.#deps;
    let store: Store | undefined;
    try {
      store = await makeFiles(this.#deps, dir, world.now());
      const first = await store.transaction(async (tx) => {
        const made = await bootstrap({ tx, world });
        const { account, apiKey } = made;
        const objects: readonly Thing[] = [
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

  async #change(after: TenantRecord, store?: Store): Promise<TenantRecord> {
    const { system, tenants } = this.#deps;
    await system.transaction((tx) => tx.tenants.update(after));
    const served = tenants.all.find(({ record }) => record.id === after.id);
    if (served) tenants.put(servedTenant(after, served.handle.tenant.keys, served.handle.store, this.#deps.baseUrl));
    else if (store) this.#serve(after, store);
    return after;
  }

  #serve(record: TenantRecord, store: Store): void {
    const { tenants, seal, baseUrl } = this.#deps;
    tenants.put(servedTenant(record, seal.keysFor(record.dir), store, baseUrl));
  }

  async #served(nameOrId: string): Promise<ServedTenant> {
    const { id } = await this.find(nameOrId);
    const served = this.#deps.tenants.all.find(({ record }) => record.id === id);
    if (!served)
      throw new KmsError('not-found', 'the tenant is deleted', { hint: 'bring it back with `kms tenant restore`' });
    return served;
  }

  async #needFree({ name, hosts }: Pick<TenantRecord, 'name' | 'hosts'>, except?: string): Promise<void> {
    for (const other of await this.#records()) {
      if (other.deletedAt !== undefined || other.id === except) continue;
      if (other.name === name) throw taken('name', 'another tenant has this name');
      const host = hosts.find((each) => other.hosts.includes(each));
      if (host !== undefined) throw taken('hosts', `the tenant ${other.name} lists ${host} already`);
    }
  }

  /** Before the change itself: what cannot be recorded is not done. */
  async #note(
    store: Store,
    record: TenantRecord,
    operation: string,
    props: object,
    changed: readonly string[] = [],
  ): Promise<void> {
    const activity = this.#activity(operation, props, { object: tenantThing(record), changed });
    await store.transaction(async (tx) => tx.record(activity));
  }

  #activity(operation: string, props: object, deed: Deed) {
    const { world } = this.#deps;
    return activityRecord(world, { keyid: localCaller.id, action, props: { operation, ...props }, deed });
  }

  #records(): Promise<TenantRecord[]> {
    return this.#deps.system.peek((tables) => tables.tenants.all());
  }

  /** Runs while no tenant is made, changed, deleted, restored or erased. */
  exclusively<R>(run: () => Promise<R>): Promise<R> {
    return this.#queue.run(run);
  }
}

function isExpired({ deletedAt }: TenantRecord, now: number): boolean {
  return deletedAt !== undefined && deletedAt <= now - restorableFor;
}

/** Whoever got its name next would get the appliance with it. */
function needNotOperator(record: TenantRecord, what: string): void {
  if (!isOperatorTenant(record)) return;
  throw new KmsError('conflict', `the tenant ${record.name} ${what}: its flags system.* concern the whole appliance`);
}

function taken(field: 'name' | 'hosts', message: string): KmsError {
  return fieldsError('conflict', [{ field, message }]);
}

interface TenantFiles {
  readonly stores: StoreWorld;
  readonly seal: SealKeeper;
}

/** In a tenant's directory until its record is there. */
function markOf(dir: string): string {
  return `${tenantDir(dir)}/tenant.new`;
}

/** Makes directory, keys and an empty store, all of which count as unfinished until `finishFiles`. */
async function makeFiles({ stores, seal }: TenantFiles, dir: string, now: number): Promise<Store> {
  const { files } = stores;
  await files.makeDir(tenantDir(dir));
  await files.replace(markOf(dir), utf8('a tenant is being made; without its record the next start removes this\n'));
  await seal.change((current) => current.withStore(dir));
  await createStore(stores, tenantDir(dir), seal.keysFor(dir), now);
  return openFiles({ stores, seal }, dir);
}

function openFiles({ stores, seal }: TenantFiles, dir: string): Promise<Store> {
  return openTenantStore(stores, tenantDir(dir), seal.keysFor(dir));
}

/** The tenant's record is durable. */
async function finishFiles({ stores: { files } }: TenantFiles, dir: string): Promise<void> {
  if (await files.exists(markOf(dir))) await files.remove(markOf(dir));
}

/** Removes keys and files, the keys first: from then on nobody can read the files. */
async function removeFiles({ stores, seal }: TenantFiles, dir: string): Promise<void> {
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
async function clearUnfinished(
  tenantFiles: TenantFiles,
  records: readonly TenantRecord[],
  onEvent: ((event: ApplianceEvent) => void) | undefined,
): Promise<void> {
  const { stores, seal } = tenantFiles;
  const known = new Set(records.map(({ dir }) => dir));
  const present = await directories(join(stores.root, 'tenants'));
  for (const dir of present) {
    if (known.has(dir)) {
      await finishFiles(tenantFiles, dir);
    } else if (await isUnfinished(tenantFiles, dir)) {
      await removeFiles(tenantFiles, dir);
      onEvent?.({
        level: 'warn',
        message: `${tenantDir(dir)}: removed what was left of a tenant that was never finished`,
      });
    } else {
      onEvent?.({ level: 'warn', message: `${tenantDir(dir)}: belongs to no tenant; it is left as it is` });
    }
  }
  for (const dir of seal.current.stores) {
    if (dir === systemDir || known.has(dir) || present.includes(dir)) continue;
    onEvent?.({ level: 'warn', message: `${tenantDir(dir)}: the seal has keys for it, and there is no such tenant` });
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
