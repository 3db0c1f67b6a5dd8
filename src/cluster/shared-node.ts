// SharedNode is this process as one of several equal nodes of an appliance in a database: the way to that, the
// directory for what is the node's own (lock, socket, how far the stores were), and the seal that all of them share.
import { equalBytes, fromUtf8, toHex, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import type { KeptSeal, SealPlace } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import {
  type DirectoryHold,
  dataDirState,
  foreign,
  makeAndHold,
  moved,
  needPrivateDirectory,
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
import { sqlWasm } from '../platform/program-files.ts';
import { postgresConfig, type StoreSource, storeName } from '../platform/store-url.ts';
import { CheckpointThread, type SharedCheckpoints } from '../platform/threads/checkpoint.ts';
import { parseHeader } from '../seal/header.ts';
import type { Seal } from '../seal/seal.ts';
import type { StoreOf } from '../storage/stores.ts';
import type { Files } from '../store/files.ts';
import type { SharedCheckpoint, SharedCheckpointJob } from '../store/shared/checkpoint.ts';
import type { SharedEngine } from '../store/shared/engine.ts';
import { openPostgres } from '../store/shared/postgres.ts';
import { exportStore } from '../store/shared/transfer.ts';
import type { StoreKeys } from '../store/store-files.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { version } from '../version.ts';
import { examineEngine, needSoundEngine } from './engine.ts';
import { examineNodes, listNodes, type NodeStatus, Nodes, needSchemasKnown } from './live-nodes.ts';

/** Milliseconds that making an appliance takes at most. */
const longestInit = 60_000;

export class SharedNode {
  readonly engine: SharedEngine;
  readonly seal: SealPlace;
  /** Whoever unseals it does so in spite of the mark of a seal on purpose. */
  isUnsealing = false;
  /** The others, once this one serves. */
  nodes: Nodes | undefined;
  /** Of the database, without a password. */
  readonly name: string;
  readonly #source: StoreSource;
  readonly #close: () => Promise<void>;
  #checkpoints: SharedCheckpoints | undefined;

  private constructor(engine: SharedEngine & { close(): Promise<void> }, source: StoreSource) {
    this.engine = engine;
    this.name = storeName(source.url);
    this.seal = sharedSeal(engine);
    this.#source = source;
    this.#close = () => engine.close();
  }

  /** Throws `unavailable` where the database cannot be reached. */
  static async connect(store: StoreSource): Promise<SharedNode> {
    return new SharedNode(await openPostgres(await postgresConfig(store)), store);
  }

  /** On a thread that all stores share: each would take a connection of its own. */
  async checkpoint(keys: StoreKeys, job: SharedCheckpointJob): Promise<SharedCheckpoint | undefined> {
    const wasm = await sqlWasm();
    this.#checkpoints ??= CheckpointThread.shared(this.#source, wasm);
    return this.#checkpoints.run(keys, job);
  }

  /**
   * Looks whether a node may serve from the database, and says there that this one does. Throws `refused` where none
   * may.
   */
  async enter(root: string, { now, onEvent, address }: Entering): Promise<void> {
    await this.needSound(now, onEvent);
    await this.join(root);
    const known = await readNode(nodeFiles(root));
    if (!known || address === undefined) return;
    const { engine } = this;
    this.nodes = await Nodes.join({ engine, id: known.node, places: [address], now, onEvent });
  }

  /** Throws `refused` for a database that nobody may serve from. */
  needSound(now: () => number, onEvent?: Entering['onEvent']): Promise<void> {
    return needSoundEngine(this.engine, this.name, now, onEvent);
  }

  /** Resolves once the stores may be brought up to the schema of this program. */
  maySchemasChange(waiting: Parameters<Nodes['allKnowSchemas']>[0]): Promise<void> {
    return this.nodes ? this.nodes.allKnowSchemas(waiting) : needSchemasKnown(this.engine);
  }

  /** As doctor looks at it: the database, and the nodes. */
  async examine(now: () => number): Promise<readonly Finding[]> {
    const findings = new Findings();
    findings.take(await examineEngine(this.engine, this.name, now));
    examineNodes((await this.status()).nodes, version, findings.add);
    return findings.all;
  }

  /**
   * Copies a store, proved, as one of a data directory. Answers false where there is none: it may be erased already.
   */
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
   * Sees to it that the appliance in the database is the one that the node's directory is for. Throws `unavailable`
   * where there is none, `refused` where it is another.
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
   * Takes away what an `init` left that was cut off. Throws `refused` where there is an appliance, or another `init`
   * may be under way.
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

  /** All stores, to which there is no seal, and what was sent ahead of some. */
  async clear(): Promise<void> {
    const { engine } = this;
    for (const { store } of await engine.stores()) await engine.erase(store);
    if (!(await engine.files.exists(sentAhead))) return;
    for (const store of (fromUtf8(await engine.files.read(sentAhead)) ?? '').split('\n')) await engine.erase(store);
    await this.forgetSent();
  }

  /** Files of these stores are sent before there are stores: till then nobody else would find them. */
  async noteSent(stores: readonly string[]): Promise<void> {
    await this.engine.files.replace(sentAhead, utf8(stores.join('\n')));
  }

  async forgetSent(): Promise<void> {
    const { files } = this.engine;
    if (await files.exists(sentAhead)) await files.remove(sentAhead);
  }

  /** Puts the first seal there, from which on there is an appliance. Throws `refused` where there is one. */
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

/** What `kms status` says of it. */
interface SharedStatus {
  readonly database: string;
  readonly nodes: readonly NodeStatus[];
}

interface Entering {
  readonly now: () => number;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** Where it listens; absent where it serves nobody. */
  readonly address?: string | undefined;
}

function taken(): KmsError {
  return new KmsError('refused', 'the database: has an appliance already; nothing was changed', {
    hint: 'serve it with `kms serve --store URL`, or name another database',
  });
}

interface NodeRecord {
  /** Hexadecimal; the node's own. */
  readonly node: string;
  readonly appliance: string;
}

/** Undefined where the directory is not a node's yet. */
export async function readNode(files: Pick<Files, 'exists' | 'read'>): Promise<NodeRecord | undefined> {
  if (!(await files.exists(nodeFile))) return undefined;
  try {
    const { node, appliance } = Object(JSON.parse(fromUtf8(await files.read(nodeFile)) ?? ''));
    if (typeof node === 'string' && typeof appliance === 'string') return { node, appliance };
  } catch {
    // It is no JSON.
  }
  throw new KmsError('corrupt', `${nodeFile}: is not what a node writes`, {
    hint: 'name a new directory with --data: nothing in this one is needed elsewhere',
  });
}

/** Marks a directory as that of a node of the appliance. */
export async function beginNode(files: Pick<Files, 'replace'>, appliance: string): Promise<void> {
  const record: NodeRecord = { node: toHex(systemRandom(16)), appliance };
  await files.replace(nodeFile, utf8(`${JSON.stringify(record)}\n`));
}

/**
 * Takes hold of the directory, which it makes unless it is there. Throws `refused` where it holds anything but a node's
 * files.
 */
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

/** The file in a database whose appliance was moved to a directory: it must not serve beside it. */
export const movedInDatabase = 'appliance/moved';

/** The file in a database that names the stores of which something was sent ahead, one a line. */
const sentAhead = 'appliance/sent';

/** As errors call it. */
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
