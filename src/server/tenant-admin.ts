// Making, changing, deleting, restoring and erasing tenants while the appliance serves the others. One operation runs at a time;
// each is recorded in the tenant's own activity log, and counts once the appliance's own store has it.
import { bootstrap } from '../core/bootstrap.ts';
import type { Limits, World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { toHex } from '../crypto/encoding.ts';
import { KmsError } from '../errors.ts';
import type { Store } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import type { Notice } from './notices.ts';
import type { SystemStore } from './stores.ts';
import { clearUnfinished, finishFiles, makeFiles, openFiles, removeFiles, type TenantFiles } from './tenant-files.ts';
import { type LimitChanges, limitsAfter, type TenantChanges } from './tenant-input.ts';
import { type ServedTenant, servedTenant, type Tenants } from './tenants.ts';

/** How long a deleted tenant can be brought back, in milliseconds. */
export const restorableFor = 30 * 24 * 60 * 60 * 1000;

export interface TenantAdminDeps extends TenantFiles {
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly world: World;
  readonly baseUrl: () => string;
  readonly onNotice: ((notice: Notice) => void) | undefined;
}

export interface NewTenantMade {
  readonly record: TenantRecord;
  readonly accountId: string;
  readonly apiKey: Awaited<ReturnType<typeof bootstrap>>['apiKey'];
}

/** The action of all of them in the activity log; `props.operation` says which one it was. */
const action = 'system.tenant';

export class TenantAdmin {
  readonly #deps: TenantAdminDeps;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: TenantAdminDeps) {
    this.#deps = deps;
  }

  /** Opens all tenants, after clearing away what a crash left. */
  async openAll(): Promise<void> {
    const records = await this.#records();
    await clearUnfinished(this.#deps, records, this.#deps.onNotice);
    for (const record of records) {
      if (record.deletedAt === undefined) this.#serve(record, await openFiles(this.#deps, record.dir));
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
    return this.#inTurn(async () => {
      const { system, world } = this.#deps;
      await this.#needFree({ name, hosts });
      const dir = toHex(world.random(8));
      const now = world.now();
      const id = world.newId('tenant');
      const { store, first } = await this.#makeStore(dir, { name, hosts });
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
    return this.#inTurn(async () => {
      const { record, handle } = await this.#served(nameOrId);
      const after = { ...record, ...changes, updatedAt: this.#deps.world.now() };
      await this.#needFree(after, record.id);
      await this.#note(handle.store, 'update', { ...changes });
      return this.#change(after);
    });
  }

  limit(nameOrId: string, changes: LimitChanges): Promise<TenantRecord> {
    return this.#inTurn(async () => {
      const { record, handle } = await this.#served(nameOrId);
      const limits: Limits = limitsAfter(handle.tenant.limits, changes);
      await this.#note(handle.store, 'limits', { limits: changes });
      return this.#change({ ...record, limits: { ...limits }, updatedAt: this.#deps.world.now() });
    });
  }

  /** Its name and hosts are free at once; files and keys stay for 30 days. */
  delete(nameOrId: string): Promise<TenantRecord> {
    return this.#inTurn(async () => {
      const { tenants, system, world } = this.#deps;
      const { record, handle } = await this.#served(nameOrId);
      if (tenants.all.length === 1) {
        throw new KmsError('conflict', `${record.name} is the only tenant`, { hint: 'make another one first' });
      }
      await this.#note(handle.store, 'delete', {});
      const deleted = { ...record, updatedAt: world.now(), deletedAt: world.now() };
      await system.transaction((tx) => tx.tenants.update(deleted));
      tenants.remove(record.id);
      await handle.store.close();
      return deleted;
    });
  }

  /** Brings a deleted one back, under another name or other hosts where those are taken. */
  restore(id: string, changes: TenantChanges): Promise<TenantRecord> {
    return this.#inTurn(async () => {
      const { world } = this.#deps;
      const record = (await this.#records()).find((each) => each.id === id);
      if (record?.deletedAt === undefined || isExpired(record, world.now())) {
        throw new KmsError('not-found', 'there is no deleted tenant of this id to restore');
      }
      const after = { ...record, ...changes, updatedAt: world.now(), deletedAt: undefined };
      await this.#needFree(after);
      const store = await openFiles(this.#deps, record.dir);
      try {
        await this.#note(store, 'restore', { ...changes });
        return await this.#change(after, store);
      } catch (error) {
        await store.close();
        throw error;
      }
    });
  }

  /** Erases the deleted tenants whose 30 days are over: keys, then files, then the record. Cut off, the next one goes on with it. */
  purge(): Promise<void> {
    return this.#inTurn(async () => {
      const { system, world, onNotice } = this.#deps;
      for (const record of await this.#records()) {
        if (!isExpired(record, world.now())) continue;
        await removeFiles(this.#deps, record.dir);
        await system.transaction((tx) => tx.tenants.erase(record.id));
        onNotice?.({
          level: 'info',
          message: `the tenant ${record.name} (${record.id}), deleted 30 days ago, is erased`,
        });
      }
    });
  }

  /** An empty store with the first account and key in it. Takes everything back when it fails. */
  async #makeStore(dir: string, props: object) {
    const { world } = this.#deps;
    let store: Store | undefined;
    try {
      store = await makeFiles(this.#deps, dir, world.now());
      const first = await store.transaction(async (tx) => {
        const made = await bootstrap({ tx, world });
        tx.record(this.#activity('create', props));
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
  async #note(store: Store, operation: string, props: object): Promise<void> {
    await store.transaction(async (tx) => tx.record(this.#activity(operation, props)));
  }

  #activity(operation: string, props: object) {
    const { world } = this.#deps;
    return {
      id: world.newId('act'),
      createdAt: world.now(),
      keyid: localCaller.id,
      action,
      ringname: '',
      validAction: true,
      status: 200,
      props: { operation, ...props },
    };
  }

  #records(): Promise<TenantRecord[]> {
    return this.#deps.system.peek((tables) => tables.tenants.all());
  }

  /** Runs while no tenant is made, changed, deleted, restored or erased. */
  exclusively<R>(run: () => Promise<R>): Promise<R> {
    return this.#inTurn(run);
  }

  #inTurn<R>(run: () => Promise<R>): Promise<R> {
    const mine = this.#last.then(run);
    this.#last = mine.catch(() => {});
    return mine;
  }
}

function isExpired({ deletedAt }: TenantRecord, now: number): boolean {
  return deletedAt !== undefined && deletedAt <= now - restorableFor;
}

function taken(field: string, problem: string): KmsError {
  return new KmsError('conflict', `${field}: ${problem}`, { fields: { [field]: problem } });
}
