// A crash at any step of making, deleting or erasing a tenant: the directory is copied before each change of a file,
// and every copy must open with the tenant either whole or gone, and the others untouched.
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { TenantAdmin } from '../../src/appliance/tenant-admin.ts';
import { openSealFile, SealKeeper, sealInFiles } from '../../src/custody/seal-keeper.ts';
import { systemDir } from '../../src/platform/data-dir.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { Tenants } from '../../src/storage/served-tenants.ts';
import { openSystemStore, storesIn } from '../../src/storage/stores.ts';
import type { AppendFile, Files } from '../../src/store/files.ts';
import { baseUrl, type Place, place } from './tenant-appliance.ts';

const day = 86_400_000;

/** Files that call `before` ahead of each change. */
function watched(files: Files, before: () => void): Files {
  const first =
    <A extends unknown[], R>(change: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> => {
      before();
      return change(...args);
    };
  return {
    ...files,
    replace: first(files.replace),
    remove: first(files.remove),
    makeDir: first(files.makeDir),
    removeDir: first(files.removeDir),
    async openAppend(name, create) {
      if (create) before();
      const file = await files.openAppend(name, create);
      const wrapped: AppendFile = {
        get size() {
          return file.size;
        },
        append: first((bytes, room) => file.append(bytes, room)),
        sync: () => file.sync(),
        trim: first(() => file.trim()),
        truncate: first((size) => file.truncate(size)),
        close: () => file.close(),
      };
      return wrapped;
    },
  };
}

/** Runs `work` and returns copies of the directory from before each change of a file, and from the end. */
async function copiesOf(p: Place, ahead: number, work: (admin: TenantAdmin) => Promise<unknown>): Promise<string[]> {
  await p.appliance.close();
  const copies: string[] = [];
  let watching = false;
  const copy = (): void => {
    if (!watching) return;
    const to = `${p.data}.${copies.length}`;
    cpSync(p.data, to, { recursive: true, filter: (path) => !/kms\.(lock|pid|sock)$/.test(path) });
    copies.push(to);
  };
  const files = watched(nodeFiles(p.data), copy);
  const seal = new SealKeeper((await openSealFile(p.data, undefined)).seal, sealInFiles(files, '/nowhere'));
  const stores = storesIn({ root: p.data, files, wasm: await sqlWasm() });
  const system = await openSystemStore(stores, seal.current.keysFor(systemDir));
  const tenants = new Tenants();
  const world = systemWorld();
  const admin = new TenantAdmin({
    stores,
    seal,
    system,
    tenants,
    world: { ...world, now: () => world.now() + ahead },
    baseUrl: () => baseUrl,
    onEvent: undefined,
  });
  await admin.openAll();
  watching = true;
  await work(admin);
  copy();
  watching = false;
  for (const { handle } of tenants.all) await handle.store.close();
  await system.close();
  return copies;
}

interface Found {
  readonly tenants: readonly { readonly name: string; readonly deletedAt?: string }[];
  readonly events: readonly ApplianceEvent[];
  /** Whether each serving tenant can write. */
  readonly works: boolean;
}

/** Opens a copy twice: the second time there is nothing left to clean up. */
async function opened(data: string, keyFile: string, ahead = 0): Promise<Found> {
  const world = systemWorld();
  const events: ApplianceEvent[] = [];
  for (const round of [1, 2]) {
    const seen: ApplianceEvent[] = [];
    const appliance = await openAppliance({
      data,
      keyFile,
      world: { ...world, now: () => world.now() + ahead },
      onEvent: (event) => seen.push(event),
    });
    const ask = async (path: string, init?: RequestInit): Promise<Response> =>
      appliance.fetchLocal(new Request(`http://kms.local${path}`, init));
    if (round === 1) {
      events.push(...seen);
      await appliance.close();
      continue;
    }
    assert.deepEqual(seen, []);
    const { data: tenants } = (await (await ask('/local/tenants?deleted=true')).json()) as { data: Found['tenants'] };
    let works = true;
    for (const { name, deletedAt } of tenants) {
      if (deletedAt !== undefined) continue;
      const headers = { 'kms-tenant': name, 'content-type': 'application/json' };
      const made = await ask('/ks/keyrings', { method: 'POST', headers, body: '{"name":"after"}' });
      works &&= made.status === 200;
      const verdict = await ask('/local/activity/verify', { method: 'POST', headers, body: '{}' });
      works &&= ((await verdict.json()) as { valid: boolean }).valid;
    }
    await appliance.close();
    return { tenants, events, works };
  }
  return assert.fail('two rounds');
}

/** Directories of tenants, and stores that the seal has keys for. */
function left(data: string): [dirs: string[], keys: string[], marks: boolean] {
  const dirs = readdirSync(join(data, 'tenants'));
  const seal = JSON.parse(readFileSync(join(data, 'kms.seal'), 'utf8')) as { keys: { store: string }[] };
  const keys = seal.keys.map(({ store }) => store).filter((store) => store !== systemDir);
  return [dirs.sort(), keys.sort(), dirs.some((dir) => existsSync(join(data, 'tenants', dir, 'tenant.new')))];
}

test('making a tenant', async () => {
  await using p = await place();
  const keyFile = p.made.keyFile;
  const copies = await copiesOf(p, 0, (admin) => admin.create({ name: 'blue', hosts: ['blue.example'] }));
  assert.ok(copies.length > 8, `${copies.length} steps`);
  const counts: number[] = [];
  let said = 0;
  for (const copy of copies) {
    const { tenants, events, works } = await opened(copy, keyFile);
    assert.ok(works, copy);
    counts.push(tenants.length);
    const [dirs, keys, marked] = left(copy);
    assert.deepEqual([dirs, dirs.length, marked], [keys, tenants.length, false], copy);
    said += events.filter(({ message }) => /removed what was left of a tenant/.test(message)).length;
  }
  assert.deepEqual(counts, [...counts].sort(), 'once it is there it stays');
  assert.deepEqual([counts[0], counts.at(-1)], [1, 2]);
  assert.ok(said > 5, 'what was removed is said');
  await p.reopen();
});

test('erasing a tenant', async () => {
  await using p = await place();
  const keyFile = p.made.keyFile;
  await p.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  await p.local('DELETE', '/local/tenants/blue');
  // The days count as passed.
  p.clock.ahead = 31 * day;
  const copies = await copiesOf(p, 31 * day, (admin) => admin.purge(Date.now() + 31 * day));
  assert.ok(copies.length > 2, `${copies.length} steps`);
  for (const copy of copies) {
    const { tenants, works } = await opened(copy, keyFile, 31 * day);
    assert.ok(works, copy);
    const [dirs, keys] = left(copy);
    assert.deepEqual([tenants.length, dirs.length, keys], [1, 1, dirs], copy);
  }
  await p.reopen();
});

test('deleting and restoring a tenant', async () => {
  await using p = await place();
  const keyFile = p.made.keyFile;
  await p.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  const copies = await copiesOf(p, 0, async (admin) => {
    const { id } = await admin.delete('blue');
    await admin.restore(id, {});
  });
  for (const copy of copies) {
    const { tenants, works } = await opened(copy, keyFile);
    assert.ok(works, copy);
    const [dirs, keys] = left(copy);
    assert.deepEqual([tenants.length, dirs.length, keys], [2, 2, dirs], copy);
  }
  await p.reopen();
});

test('a step that fails without a crash leaves nothing behind', async () => {
  await using p = await place();
  await p.appliance.close();
  const before = left(p.data);
  for (let failing = 1; ; failing++) {
    let count = 0;
    let broken = true;
    const files = watched(nodeFiles(p.data), () => {
      if (broken && ++count === failing) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' });
    });
    const seal = new SealKeeper((await openSealFile(p.data, undefined)).seal, sealInFiles(files, '/nowhere'));
    const stores = storesIn({ root: p.data, files, wasm: await sqlWasm() });
    // The system store's writes don't fail, as if it were on another disk.
    const own = storesIn({ root: p.data, files: nodeFiles(p.data), wasm: await sqlWasm() });
    const system = await openSystemStore(own, seal.current.keysFor(systemDir));
    const tenants = new Tenants();
    broken = false;
    const admin = new TenantAdmin({
      stores,
      seal,
      system,
      tenants,
      world: systemWorld(),
      baseUrl: () => baseUrl,
      onEvent: undefined,
    });
    await admin.openAll();
    broken = true;
    const result = await admin.create({ name: 'blue', hosts: ['blue.example'] }).catch((error: unknown) => error);
    const failed = result instanceof Error;
    assert.equal(tenants.names().length, failed ? 1 : 2);
    for (const { handle } of tenants.all) await handle.store.close();
    await system.close();
    if (!failed) break;
    assert.deepEqual(left(p.data), before, `step ${failing}`);
  }
  await p.reopen();
  assert.equal((await p.local('GET', '/ks/keyrings', undefined, 'blue')).status, 200);
});

test('a directory that nobody marked as unfinished is never removed', async () => {
  await using p = await place();
  const [[dir = '']] = left(p.data);
  await p.appliance.close();
  cpSync(join(p.data, 'tenants', dir), join(p.data, 'tenants', 'copy'), { recursive: true });
  await p.reopen();
  assert.deepEqual(left(p.data)[0], [dir, 'copy'].sort());
  assert.ok(p.events.some(({ message }) => message === 'tenants/copy: belongs to no tenant; it is left as it is'));
});
