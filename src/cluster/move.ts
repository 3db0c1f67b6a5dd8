// `kms move` moves an appliance that is not being served from its data directory to a database that several nodes
// share, or back, whole and verified to be the same. The source stays as it was except for a mark, because of which it
// refuses to serve until the mark is removed.
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { needNoFence } from '../backup/fence.ts';
import { restoreInto } from '../backup/restore.ts';
import { findSource, placeKey, type RestoreOptions, type RestoreResult } from '../backup/restore-command.ts';
import { needRoomFor } from '../backup/restore-source.ts';
import { fromUtf8, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { readSealFile, SealKeeper, sealInFiles } from '../custody/seal-keeper.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError, systemError } from '../errors.ts';
import {
  dataDirState,
  foreign,
  holdNew,
  longestMark,
  movedMark,
  needAppliance,
  restoreMark,
  sealFile,
  systemDir,
  tenantDir,
} from '../platform/data-dir.ts';
import { systemWorld } from '../platform/environment.ts';
import { tryFileSystem } from '../platform/file-system.ts';
import { lockDirectory } from '../platform/lock.ts';
import { makeDirs, nodeFiles } from '../platform/node-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { type StoreSource, storeName } from '../platform/store-url.ts';
import { readStores } from '../storage/read-stores.ts';
import { writeRollbackNotes } from '../storage/rollback-guard.ts';
import { storesIn } from '../storage/stores.ts';
import type { Files } from '../store/files.ts';
import { exportStore, type HeldStore, importStore } from '../store/shared/transfer.ts';
import { listStoreFiles } from '../store/store-files.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { needNobodyServes } from './live-nodes.ts';
import { movedInDatabase, SharedNode } from './shared-node.ts';

export interface MovedStore {
  /** The store's name in the seal. */
  readonly name: string;
  readonly transactions: number;
  /** Number of rows in all tables. */
  readonly rows: number;
  readonly activities: number;
  /** Chain hash of the last activity record, base64url. */
  readonly head: string;
}

export interface Moved {
  readonly applianceId: string;
  readonly from: string;
  readonly to: string;
  readonly stores: readonly MovedStore[];
}

export interface MoveOptions extends KeyOptions {
  readonly store: StoreSource;
}

/** Directory of a store within a data directory. */
function dirOf(name: string): string {
  return name === systemDir ? systemDir : tenantDir(name);
}

export async function transferWorld(node: SharedNode, { seal }: Pick<OpenedSeal, 'seal'>, name: string) {
  return {
    engine: node.engine,
    keys: seal.keysFor(name),
    wasm: await sqlWasm(),
    migrations: name === systemDir ? systemMigrations : tenantMigrations,
    random: systemRandom,
    at: Date.now(),
  };
}

export function movedStore(name: string, { mark, tables, activity }: HeldStore): MovedStore {
  return {
    name,
    transactions: mark.sequence,
    rows: Object.values(tables).reduce((sum, count) => sum + count, 0),
    activities: activity.seq,
    head: activity.hash,
  };
}

/**
 * Moves from the directory `options.data`. Throws `refused` if the database has an appliance, or if a standby took
 * over.
 */
export async function moveToDatabase(options: MoveOptions): Promise<Moved> {
  const root = resolve(options.data);
  await needAppliance(root);
  const lock = lockDirectory(root);
  try {
    // An appliance whose standby took over must not continue in a second place. A fence that it has not met yet does
    // not count: `kms move --from` raises one too, and if that is not answered, this is the way on.
    await needNoFence({ files: nodeFiles(root), shipped: [], takesBack: false });
    const node = await SharedNode.connect(options.store);
    try {
      await node.needSound(Date.now);
      await node.makeRoom();
      const { bytes, name } = await readSealFile(root);
      const opened = await unseal(bytes, name, options);
      try {
        return await fillDatabase(root, node, opened);
      } catch (error) {
        if (!(await node.engine.readSeal())) await node.clear();
        throw error;
      } finally {
        opened.seal.wipe();
      }
    } finally {
      await node.close();
    }
  } catch (error) {
    throw systemError(error, root);
  } finally {
    lock.release();
  }
}

async function fillDatabase(root: string, node: SharedNode, opened: OpenedSeal): Promise<Moved> {
  const files = nodeFiles(root);
  const { seal } = opened;
  const stores: MovedStore[] = [];
  for (const name of await storeNames(root, files, opened)) {
    const from = { files, dir: dirOf(name) };
    const held = await importStore(await transferWorld(node, opened, name), from, name);
    await node.engine.finish(held.uid);
    stores.push(movedStore(name, held));
  }
  // From here on the directory is not served; the database only once its seal is there.
  await files.replace(movedMark, markText(node.name));
  try {
    if (await sealInFiles(files, root).isOnPurpose()) await node.seal.sealOnPurpose();
    await node.begin(seal);
  } catch (error) {
    // If the seal may have arrived, the mark stays until an operator has looked.
    if (await node.engine.readSeal().then((found) => !found)) await files.remove(movedMark);
    throw error;
  }
  return { applianceId: seal.applianceId, from: root, to: node.name, stores };
}

/**
 * `kms restore` into a database without an appliance: restores into a directory beside `options.data`, moves that to
 * the database and removes it. `options.data` is the directory of the first node, beside which the key file is copied.
 */
export async function restoreToDatabase(options: RestoreOptions, store: StoreSource): Promise<RestoreResult> {
  const data = resolve(options.data);
  const staging = `${data}.restoring`;
  const node = await SharedNode.connect(store);
  try {
    await node.needSound(Date.now);
    await node.makeRoom();
    const { unsealed, source } = await findSource(options, data);
    try {
      await rm(staging, { recursive: true, force: true });
      await makeDirs(staging);
      await tryFileSystem(staging, { isPrivate: true });
      await needRoomFor(source, staging);
      const stores = { root: staging, files: nodeFiles(staging), wasm: await sqlWasm() };
      const restored = await restoreInto(stores, unsealed.seal, source, systemWorld());
      await fillDatabase(staging, node, unsealed);
      const key = await placeKey(data, unsealed.slot.kind === 'recovery-kit' ? undefined : unsealed.place);
      return {
        ...restored,
        ...key,
        applianceId: unsealed.seal.applianceId,
        data: node.name,
        madeAt: source.origin.madeAt,
      };
    } catch (error) {
      if (!(await node.engine.readSeal())) await node.clear();
      throw error;
    } finally {
      unsealed.seal.wipe();
      await rm(staging, { recursive: true, force: true });
    }
  } catch (error) {
    throw systemError(error, data);
  } finally {
    await node.close();
  }
}

/**
 * Reads the stores as a start does, which refuses any that is older than it was. The store of a deleted tenant may be
 * half erased.
 */
async function storeNames(root: string, files: Files, { seal }: OpenedSeal): Promise<readonly string[]> {
  const keeper = new SealKeeper(seal, sealInFiles(files, root));
  const read = await readStores(storesIn({ root, files, wasm: await sqlWasm() }), keeper);
  try {
    const rows = read.system.rows((schema) =>
      schema === 0 ? 'SELECT 0 WHERE 0' : 'SELECT dir FROM tenants ORDER BY seq',
    );
    const there: string[] = [systemDir];
    for (const { dir } of rows) {
      const name = String(dir);
      if (read.tenants.has(name) || (await listStoreFiles(files, tenantDir(name))).snapshots.length > 0) {
        there.push(name);
      }
    }
    return there;
  } finally {
    await read.discard();
  }
}

/**
 * Moves to the directory `to`, which is missing or empty; `options.data` is that of a node, beside which a key file may
 * lie.
 */
export async function moveToDirectory(options: MoveOptions, to: string): Promise<Moved> {
  const root = resolve(to);
  await refuseUnlessEmpty(root);
  const node = await SharedNode.connect(options.store);
  try {
    const { bytes, name } = await node.seal.read();
    await refuseIfElsewhere(node, root);
    await needNobodyServes(node.engine);
    const opened = await unseal(bytes, name, options);
    try {
      await makeDirs(root);
      const lock = await holdNew(root);
      try {
        await refuseUnlessEmpty(root);
        return await fillDirectory(root, node, opened, bytes);
      } finally {
        lock.release();
      }
    } finally {
      opened.seal.wipe();
    }
  } catch (error) {
    throw systemError(error, root);
  } finally {
    await node.close();
  }
}

async function refuseUnlessEmpty(root: string): Promise<void> {
  const state = await dataDirState(root);
  if (state === 'foreign') throw foreign(root);
  if (state === 'missing' || state === 'empty' || state === 'unrestored') return;
  throw new KmsError('refused', `${root}: is not empty; nothing was changed`, {
    hint: 'name a new directory with --to',
  });
}

/** An interrupted move to `root` is completed; after a move to elsewhere this one would make a second appliance. */
async function refuseIfElsewhere({ engine, name }: SharedNode, root: string): Promise<void> {
  if (!(await engine.files.exists(movedInDatabase))) return;
  const to = markedPlace(await engine.files.read(movedInDatabase, longestMark));
  if (to === root) return;
  throw new KmsError('refused', `${name}: was moved to ${to} already; nothing was changed`, {
    hint: 'move what is there; or, if that is lost, run `kms move --undo` with the same --store first',
  });
}

async function fillDirectory(
  root: string,
  node: SharedNode,
  opened: OpenedSeal,
  sealBytes: Uint8Array,
): Promise<Moved> {
  const files = nodeFiles(root);
  const { seal } = opened;
  await files.replace(restoreMark, utf8('a move is under way, or was cut off: run `kms move` again\n'));
  for (const dir of [systemDir, 'tenants']) await files.removeDir(dir);
  // From here on no node serves from the database.
  await node.engine.files.replace(movedInDatabase, markText(root));
  try {
    const held = new Map<string, HeldStore>();
    for (const { name, store, isWhole } of await node.engine.stores()) {
      if (!isWhole || !seal.stores.includes(name)) continue;
      const uid = Uint8Array.fromHex(store);
      held.set(name, await exportStore(await transferWorld(node, opened, name), uid, { files, dir: dirOf(name) }));
    }
    await placeKey(root, opened.slot.kind === 'recovery-kit' ? undefined : opened.place);
    await writeRollbackNotes(files, seal.keysFor(systemDir), held, Date.now());
    if (await node.seal.isOnPurpose()) await sealInFiles(files, root).sealOnPurpose();
    await files.replace(sealFile, sealBytes);
    await files.remove(restoreMark);
    await files.syncDir('.');
    const stores = [...held].map(([name, store]) => movedStore(name, store));
    return { applianceId: seal.applianceId, from: node.name, to: root, stores };
  } catch (error) {
    if (!(await files.exists(sealFile))) await node.engine.files.remove(movedInDatabase);
    throw error;
  }
}

function markText(to: string): Uint8Array {
  return utf8(`${JSON.stringify({ to, at: new Date().toISOString() })}\n`);
}

/** Lets the source of a move serve again: the directory `data`, or the database. Returns where it had been moved to. */
export async function undoMove(data: string, store: StoreSource | undefined): Promise<{ from: string; to: string }> {
  if (store) {
    const node = await SharedNode.connect(store);
    try {
      return { from: storeName(store.url), to: await unmark(node.engine.files, movedInDatabase, node.name) };
    } finally {
      await node.close();
    }
  }
  const root = resolve(data);
  if ((await dataDirState(root)) !== 'moved') throw notMoved(root);
  const lock = lockDirectory(root);
  try {
    return { from: root, to: await unmark(nodeFiles(root), movedMark, root) };
  } finally {
    lock.release();
  }
}

async function unmark(files: Pick<Files, 'exists' | 'read' | 'remove'>, name: string, from: string): Promise<string> {
  if (!(await files.exists(name))) throw notMoved(from);
  const to = markedPlace(await files.read(name, longestMark));
  await files.remove(name);
  return to;
}

/** The destination in a mark that `markText` wrote. */
function markedPlace(mark: Uint8Array): string {
  try {
    return String(JSON.parse(fromUtf8(mark) ?? '').to);
  } catch {
    return 'elsewhere';
  }
}

function notMoved(from: string): KmsError {
  return new KmsError('refused', `${from}: was not moved elsewhere; nothing was changed`, {
    hint: 'name what was moved with --data or --store',
  });
}
