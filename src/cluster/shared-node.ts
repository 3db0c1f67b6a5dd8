// SharedNode is this process as one of several equal nodes of an appliance in a database: the connection to that, the
// directory of the node's own files (lock, socket, witness), and the seal that all nodes share.
import { equalBytes, fromUtf8, toHex, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import type { KeptSeal, SealPlace } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import {
  type DirectoryHold,
  dataDirState,
  foreign,
  longestMark,
  makeAndHold,
  moved,
  nodeFile,
  notOfNode,
  sealName,
  systemDir,
  unrestored,
} from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { type Finding, Findings } from '../platform/finding.ts';
import { lockDirectory } from '../platform/lock.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { needPrivateDirectory } from '../platform/ownership.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { postgresConfig, type StoreSource, storeName } from '../platform/store-url.ts';
import { CheckpointThread } from '../platform/threads/checkpoint.ts';
import { parseHeader } from '../seal/header.ts';
import type { Seal } from '../seal/seal.ts';
import type { StoreOf } from '../storage/stores.ts';
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { Files } from '../store/files.ts';
import type { SharedEngine } from '../store/shared/engine.ts';
import { openPostgres } from '../store/shared/postgres.ts';
import { exportStore } from '../store/shared/transfer.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { version } from '../version.ts';
import { examineEngine, needSoundEngine } from './database-checks.ts';
import { examineNodes, listNodes, type NodeStatus, Nodes, needSchemasKnown } from './live-nodes.ts';

/** Longest time, in milliseconds, that making an appliance takes. */
const longestInit = 60_000;

export class SharedNode {
  readonly engine: SharedEngine;
  readonly seal: SealPlace;
  /** True while this node unseals, which overrides the mark of a seal on purpose. */
  isUnsealing = false;
  /** The list of nodes, once this one serves. */
  nodes: Nodes | undefined;
  /** The database's URL without a password. */
  readonly name: string;
  readonly #source: StoreSource;
  readonly #close: () => Promise<void>;
  #checkpoints: CheckpointThread | undefined;

  private constructor(engine: SharedEngine & { close(): Promise<void> }, source: StoreSource) {
    this.engine = engine;
    this.name = storeName(source.url);
    this.seal = sharedSeal(engine);
    this.#source = source;
    this.#close = () => engine.close();
  }

  /** Throws `unavailable` if the database cannot be reached. */
  static async connect(store: StoreSource): Promise<SharedNode> {
    return new SharedNode(await openPostgres(await postgresConfig(store)), store);
  }

  /** Runs a checkpoint on a thread that all stores share: a thread each would take a connection each. */
  async checkpoint(store: string, keys: StoreKeys, job: CheckpointJob): Promise<CheckpointResult | undefined> {
    const wasm = await sqlWasm();
    this.#checkpoints ??= CheckpointThread.shared(this.#source, wasm);
    return this.#checkpoints.run(store, keys, job);
  }

  /** Checks whether a node may serve from the database, and registers this one there. Throws `refused` if none may. */
  async enter(root: string, { now, onEvent, address }: Entering): Promise<void> {
    await this.needSound(now, onEvent);
    await this.join(root);
    const known = await readNode(nodeFiles(root));
    if (!known || address === undefined) return;
    const { engine } = this;
    this.nodes = await Nodes.join({ engine, id: known.node, places: [address], now, onEvent });
  }

  /** Throws `refused` for a database that must not be served from. */
  needSound(now: () => number, onEvent?: Entering['onEvent']): Promise<void> {
    return needSoundEngine(this.engine, this.name, now, onEvent);
  }

  /** Resolves once the stores may be migrated to the schema of this program. */
  maySchemasChange(waiting: Parameters<Nodes['allKnowSchemas']>[0]): Promise<void> {
    return this.nodes ? this.nodes.allKnowSchemas(waiting) : needSchemasKnown(this.engine);
  }

  /** Findings for `kms doctor`: the database, and the nodes. */
  async examine(now: () => number): Promise<readonly Finding[]> {
    const findings = new Findings();
    findings.take(await examineEngine(this.engine, this.name, now));
    examineNodes((await this.status()).nodes, version, findings.add);
    return findings.all;
  }

  /** Copies a store, verified, into a data directory. Returns false if there is none: it may be erased already. */
  async copyStore({ dir, keys }: StoreOf, to: { files: Files; wasm: Uint8Array; at: number }): Promise<boolean> {
    const found = (await this.engine.stores()).find(({ name }) => name === sealName(dir));
    if (!found) return false;
    const { engine } = this;
    const migrations = dir === systemDir ? systemMigrations : tenantMigrations;
    const world = { ...to, engine, keys, migrations, random: systemRandom };
    await exportStore(world, Uint8Array.fromHex(found.store), { files: to.files, dir });
    return true;
  }

  async status(): Promise<SharedStatus> {
    const nodes = await (this.nodes ? this.nodes.list() : listNodes(this.engine));
    return { database: this.name, nodes };
  }

  /**
   * Makes sure that the appliance in the database is the one that the node's directory belongs to. Throws `unavailable`
   * if there is none, `refused` if it is another.
   */
  async join(root: string): Promise<void> {
    const { bytes, name } = await this.seal.read();
    if (await this.engine.files.exists(movedInDatabase)) {
      throw new KmsError('refused', `${this.name}: the appliance was moved to a data directory`, {
        hint: 'serve that one, or run `kms move --undo --store URL` to let this one serve again',
      });
    }
    const { applianceId } = parseHeader(bytes, name).header;
    const files = nodeFiles(root, { ofItsOwner: true });
    const known = await readNode(files);
    if (!known) return beginNode(files, applianceId);
    if (known.appliance === applianceId) return;
    throw new KmsError(
      'refused',
      `${root}: is the directory of a node of the appliance ${known.appliance}, and the database has ${applianceId}`,
      { hint: 'name the database of that appliance with --store, or another directory with --data' },
    );
  }

  /**
   * Removes the remains of an interrupted `init`. Throws `refused` if there is an appliance, or if another `init` may
   * be under way.
   */
  async makeRoom(): Promise<void> {
    if (await this.engine.readSeal()) throw taken();
    const stores = await this.engine.stores();
    if (stores.some(({ age }) => age < longestInit)) {
      throw new KmsError('refused', 'the database: another `kms init` is under way, or was cut off a moment ago', {
        hint: `try again in ${longestInit / 1000} seconds, unless there is an appliance by then`,
      });
    }
    await this.clear();
  }

  /** Erases all stores, for which there is no seal, and files that were sent ahead. */
  async clear(): Promise<void> {
    const { engine } = this;
    for (const { store } of await engine.stores()) await engine.erase(store);
    if (!(await engine.files.exists(sentAhead))) return;
    for (const store of (fromUtf8(await engine.files.read(sentAhead, longestSent)) ?? '').split('\n'))
      await engine.erase(store);
    await this.forgetSent();
  }

  /** Records stores whose files are sent ahead: until the stores exist, no other list has them. */
  async noteSent(stores: readonly string[]): Promise<void> {
    await this.engine.files.replace(sentAhead, utf8(stores.join('\n')));
  }

  async forgetSent(): Promise<void> {
    const { files } = this.engine;
    if (await files.exists(sentAhead)) await files.remove(sentAhead);
  }

  /** Stores the first seal, which makes the appliance exist. Throws `refused` if there is one. */
  async begin(seal: Seal): Promise<void> {
    const bytes = seal.toBytes();
    const isFirst = await this.engine.replaceSeal(0, bytes).catch(async (error: unknown) => {
      const found = await this.engine.readSeal();
      if (found && equalBytes(found.bytes, bytes)) return true;
      throw error;
    });
    if (!isFirst) throw taken();
  }

  async close(): Promise<void> {
    await this.nodes?.close();
    await this.#checkpoints?.end();
    await this.#close();
  }
}

/** The part of `kms status` about the database. */
interface SharedStatus {
  readonly database: string;
  readonly nodes: readonly NodeStatus[];
}

interface Entering {
  readonly now: () => number;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** Address on which it listens; absent if it serves no clients. */
  readonly address?: string | undefined;
}

function taken(): KmsError {
  return new KmsError('refused', 'the database: has an appliance already; nothing was changed', {
    hint: 'serve it with `kms serve --store URL`, or name another database',
  });
}

interface NodeRecord {
  /** The node's own id, hexadecimal. */
  readonly node: string;
  readonly appliance: string;
}

/** Undefined if the directory is not yet a node's. */
export async function readNode(files: Pick<Files, 'exists' | 'read'>): Promise<NodeRecord | undefined> {
  if (!(await files.exists(nodeFile))) return undefined;
  try {
    const { node, appliance } = Object(JSON.parse(fromUtf8(await files.read(nodeFile, longestMark)) ?? ''));
    if (typeof node === 'string' && typeof appliance === 'string') return { node, appliance };
  } catch {
    // Not JSON.
  }
  throw new KmsError('corrupt', `${nodeFile}: expected the ids of a node and its appliance, found something else`, {
    hint: 'name a new directory with --data: nothing in this one is needed elsewhere',
  });
}

/** Marks a directory as that of a node of the appliance. */
export async function beginNode(files: Pick<Files, 'replace'>, appliance: string): Promise<void> {
  const record: NodeRecord = { node: toHex(systemRandom(16)), appliance };
  await files.replace(nodeFile, utf8(`${JSON.stringify(record)}\n`));
}

/** Locks the directory, and makes it if it is missing. Throws `refused` if it holds anything but a node's files. */
export async function holdNodeDirectory(root: string): Promise<DirectoryHold> {
  const state = await dataDirState(root);
  if (state === 'foreign') throw foreign(root);
  if (state === 'unrestored') throw unrestored(root);
  if (state === 'moved') throw moved(root);
  if (state === 'whole' || state === 'unfinished') throw notOfNode(root);
  if (state !== 'node') return makeAndHold(root);
  await needPrivateDirectory(root);
  const lock = lockDirectory(root);
  return { lock, giveUp: async () => lock.release() };
}

/** File in a database whose appliance was moved to a directory, and so must not be served from. */
export const movedInDatabase = 'appliance/moved';

/** File in a database that names the stores with files sent ahead, one a line. */
const sentAhead = 'appliance/sent';
/** In bytes: 33 for each store. */
const longestSent = 16 * 1024 * 1024;

/** Name of the seal in errors. */
const sealInDatabase = 'the seal in the database';

function sharedSeal(engine: SharedEngine): SealPlace {
  return {
    async read(): Promise<KeptSeal> {
      const found = await engine.readSeal();
      if (found) return { bytes: found.bytes, version: found.version, name: sealInDatabase };
      throw new KmsError('unavailable', 'there is no appliance in the database', {
        hint: 'make one with `kms init --store URL`, once for all nodes',
      });
    },
    replace: (before, bytes) => engine.replaceSeal(before, bytes),
    isOnPurpose: async () => (await engine.readSeal())?.isSealed ?? false,
    sealOnPurpose: () => engine.markSealed(true),
    endOnPurpose: () => engine.markSealed(false),
  };
}
