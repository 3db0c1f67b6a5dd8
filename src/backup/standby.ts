// Standby is a directory that follows a shipped appliance, and becomes that appliance by one command. Until then it
// serves no one, and has no seal of its own. A takeover fences the life that it followed, gives that the time to stop
// and to ship the rest, and begins the next epoch, like a restore. It may be cut off at any step: repeated, it
// continues.
import { readdir, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { StandbyAnswer, TakenOverAnswer } from '../api/local/copies.ts';
import { toHex, utf8 } from '../crypto/bytes.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { type KeyOptions, unseal } from '../custody/unsealer.ts';
import { KmsError, reasonOf, systemError } from '../errors.ts';
import { isCount, isHex, isJsonObject } from '../model/json.ts';
import { dataDirState, holdNew, inDir, standbyMark, systemDir } from '../platform/data-dir.ts';
import { diskSpace } from '../platform/disk.ts';
import { systemWorld } from '../platform/environment.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { type ForeignFiles, foreignFiles } from '../platform/foreign-files.ts';
import { type DirectoryLock, lockFile } from '../platform/lock.ts';
import { makeDirs, nodeFiles } from '../platform/node-files.ts';
import { isOfAnother } from '../platform/ownership.ts';
import { sqlWasm } from '../platform/program-files.ts';
import type { Seal } from '../seal/seal.ts';
import { Follower, type Proven } from './follow.ts';
import { parseJson } from './format.ts';
import { type ShippedState, transactionsIn } from './known-state.ts';
import { lifeBeside, parted } from './lives.ts';
import { placeKey } from './restore-command.ts';
import { needRoomFor } from './restore-source.ts';
import { livesNamed, type Point, parseShippedDirectory, readPoint, type ShippedDirectory } from './ship-journal.ts';
import { findDirectories, openBeside, rootOf, type ShippedStores, shippedStores } from './ship-source.ts';
import { longestLine } from './shipped-bounds.ts';
import {
  clearStandby,
  copiesDir,
  isFencedBy,
  newestArrived,
  onceArrived,
  type Places,
  type Stopped,
  standbyNames,
  stopTheOther,
  type TakingOver,
  takeOver,
} from './take-over.ts';

interface StandbyOptions {
  /** The shipped directory. Default: the one followed before. */
  readonly from?: string | undefined;
  /** The new data directory: missing, empty or a standby's. */
  readonly data: string;
  /** `data`: the directory beside which a key file may be, if not the standby's own. */
  readonly keys: Omit<KeyOptions, 'data'> & Partial<Pick<KeyOptions, 'data'>>;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** Bytes that can still be written to its directory. Default: those of the disk. */
  readonly free?: (() => Promise<number>) | undefined;
}

/** Contents of the mark. */
interface Mark {
  readonly format: 1;
  /** Random, hexadecimal: identifies the standby in its fence. */
  readonly id: string;
  readonly from: string;
  /** The last proven state. */
  readonly proven?: { readonly directory: string; readonly point: Point };
  /** How far the newest journal went that the key verified: nothing older is followed, whatever the copy is like. */
  readonly reach?: { readonly directory: string; readonly at: number };
}

type StandbyStatus = StandbyAnswer['standby'];

/** Milliseconds between two looks at the shipped directory. */
const pause = 1000;

export class Standby {
  readonly data: string;
  readonly #options: StandbyOptions;
  readonly #lock: DirectoryLock;
  readonly #wasm: Uint8Array;
  readonly #follower: Follower;
  /** The shipped directory, with all lives in it. */
  readonly #lives: ForeignFiles;
  #mark: Mark;
  /** How each seal was opened. */
  readonly #opened = new WeakMap<Seal, OpenedSeal>();
  #problem: string | undefined = 'it has not looked there yet';
  #advice: string | undefined;
  #said: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  /** Locks the directory; makes a missing or empty one a standby's. */
  static async open(options: StandbyOptions): Promise<Standby> {
    const data = resolve(options.data);
    try {
      await needStandby(data, options.from === undefined);
      const from = options.from === undefined ? undefined : resolve(options.from);
      if (from !== undefined) await refuseDataDirectory(from);
      await makeDirs(data);
      const lock = await holdNew(data);
      try {
        await needStandby(data, options.from === undefined);
        const found = await readMark(data);
        if (from === undefined) await needOwnMark(data);
        const id = found?.id ?? toHex(systemWorld().random(16));
        const mark: Mark = { ...found, format: 1, id, from: from ?? found?.from ?? '' };
        await writeMark(data, mark);
        return new Standby(data, { ...options }, lock, mark, await sqlWasm());
      } catch (error) {
        lock.release();
        throw error;
      }
    } catch (error) {
      throw systemError(error, data);
    }
  }

  private constructor(data: string, options: StandbyOptions, lock: DirectoryLock, mark: Mark, wasm: Uint8Array) {
    this.data = data;
    this.#options = options;
    this.#lock = lock;
    this.#mark = mark;
    this.#wasm = wasm;
    this.#lives = foreignFiles({ path: rootOf(mark.from), own: [data] });
    this.#follower = this.#newFollower(options.keys);
  }

  /** Follows until it is closed or takes over. */
  start(): void {
    this.#running = this.#look().then(() => {
      if (!this.#closed) this.#timer = globalThis.setTimeout(() => this.start(), pause).unref();
    });
  }

  status(): StandbyStatus {
    const { shipped, copied, proven, seal } = this.#follower;
    const { appliance, epoch } = copied?.directory ?? {};
    const behind =
      shipped && copied && shipped.directory.name === copied.directory.name
        ? {
            transactions: Math.max(0, transactionsIn(shipped) - transactionsIn(copied)),
            seconds: Math.max(0, Math.round((shipped.point.at - copied.point.at) / 1000)),
          }
        : null;
    return {
      from: this.#mark.from,
      ...(appliance !== undefined && epoch !== undefined && { appliance, epoch }),
      shipped: reached(shipped),
      copied: reached(copied),
      proven: reached(proven),
      behind,
      hasKey: seal !== undefined,
      ...(this.#problem !== undefined && { problem: this.#problem }),
      ...(this.#advice !== undefined && { advice: this.#advice }),
    };
  }

  /**
   * Becomes the appliance: then the directory is an ordinary data directory, which this has released. If it cannot,
   * throws, and goes on following. `keys`: sources of the master key. Default: those used so far.
   */
  async takeOver(how: TakingOver, keys = this.#options.keys): Promise<TakenOverAnswer> {
    await this.#rest();
    const follower = this.#follower.seal ? this.#follower : this.#newFollower(keys);
    try {
      const taken = await takeOver(
        {
          ...this.#stopping(follower, keys),
          ...{ root: this.data, data: nodeFiles(this.data), wasm: this.#wasm },
          // Beside the copy, which stays until it is done.
          needRoom: (source) => needRoomFor(source, this.data, this.#free),
        },
        how,
      );
      // A recovery kit belongs in a safe, not beside the data.
      const { slot, place } = (follower.seal && this.#opened.get(follower.seal)) ?? {};
      const key = await placeKey(this.data, slot?.kind === 'recovery-kit' ? undefined : place);
      this.#letGo();
      return { data: this.data, ...taken, ...key };
    } catch (error) {
      if (this.#timer) this.start();
      throw systemError(error, this.#mark.from);
    } finally {
      if (follower !== this.#follower) follower.wipe();
    }
  }

  /** Copies and proves what has arrived, except what was proven `before`. Throws if it cannot. */
  async catchUp(before?: Proven): Promise<Proven> {
    await this.#rest();
    const look = async (): Promise<Proven> => {
      await this.#follower.look();
      return this.#follower.prove(before);
    };
    return onceArrived(look, () => setTimeout(pause));
  }

  /** The stores of a copied state, for reading, and the seal that opens them. */
  async stores({ directory, point }: ShippedState): Promise<{ shipped: ShippedStores; opened: OpenedSeal }> {
    const { seal } = this.#follower;
    const opened = seal && this.#opened.get(seal);
    if (!opened) throw new KmsError('internal', 'a state is to be read without a key');
    return { shipped: await shippedStores(this.#places.copy(directory.name), opened.seal, [point]), opened };
  }

  /** Whether its own fence stands. Throws `refused` if another standby's does. */
  hasFenced({ directory }: Proven): Promise<boolean> {
    return isFencedBy({ ...this.#places, follower: this.#follower, id: this.#mark.id }, { directory });
  }

  /** Makes the primary stop, for a takeover elsewhere than in this directory. Repeated, it continues. */
  async stopOther(how: TakingOver): Promise<Stopped<ShippedState>> {
    await this.#rest();
    return stopTheOther(this.#stopping(this.#follower), how, newestArrived);
  }

  #stopping(follower: Follower, { keys, data = this.data }: StandbyOptions['keys'] = this.#options.keys) {
    return {
      ...this.#places,
      from: this.#mark.from,
      directories: () => this.#directories(),
      all: () => findDirectories(rootOf(this.#mark.from), this.#lives),
      // No passphrase prompt for the seals of other lives.
      openBeside: (name: string) => openBeside(this.#lives, name, { data, keys }),
      ...{ follower, id: this.#mark.id, host: hostname(), world: systemWorld() },
      pause: (milliseconds: number) => setTimeout(milliseconds),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#rest();
    this.#letGo();
  }

  async #rest(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
    clearTimeout(this.#timer);
  }

  #letGo(): void {
    this.#closed = true;
    this.#follower.wipe();
    this.#lock.release();
  }

  readonly #free = (): Promise<number> => this.#options.free?.() ?? diskSpace(this.data).then(({ free }) => free);

  get #places(): Places {
    return {
      source: (name) => this.#lives.beneath(name),
      copy: (name) => nodeFiles(join(this.data, copiesDir, name)),
    };
  }

  #directories(): Promise<readonly ShippedDirectory[]> {
    return findDirectories(this.#mark.from, this.#lives);
  }

  #newFollower(keys: StandbyOptions['keys']): Follower {
    const root = join(this.data, copiesDir);
    // A named life is the one meant, even if a later one was followed so far.
    const named = parseShippedDirectory(basename(this.#mark.from));
    const isMeant = ({ name }: ShippedDirectory): boolean => named === undefined || named.name === name;
    const { proven, reach } = this.#mark;
    const [life, reached] = [proven, reach].map((noted) => parseShippedDirectory(noted?.directory ?? ''));
    return new Follower(
      {
        directories: () => this.#directories(),
        copies: async () => livesNamed(await readdir(root).catch(() => [])).filter(isMeant),
        ...this.#places,
        async dropOthers(name) {
          for (const each of await readdir(root).catch(() => [])) {
            if (each !== name) await nodeFiles(root).removeDir(each);
          }
        },
        openSeal: (bytes, name) => this.#openSeal(bytes, name, keys),
        wasm: this.#wasm,
        room: this.#free,
        uptime: () => performance.now(),
        now: systemWorld().now,
        onProven: async (state) => {
          this.#mark = { ...this.#mark, proven: { directory: state.directory.name, point: state.point } };
          await writeMark(this.data, this.#mark);
        },
        onReach: async ({ directory, at }) => {
          this.#mark = { ...this.#mark, reach: { directory: directory.name, at } };
          await writeMark(this.data, this.#mark);
        },
      },
      {
        proven: life && proven && isMeant(life) ? { directory: life, point: proven.point } : undefined,
        reach: reached && reach && isMeant(reached) ? { directory: reached, at: reach.at } : undefined,
      },
    );
  }

  async #openSeal(bytes: Uint8Array, name: string, keys: StandbyOptions['keys']): Promise<Seal | undefined> {
    try {
      const opened = await unseal(bytes, `the seal in ${name}`, { data: this.data, ...keys });
      this.#opened.set(opened.seal, opened);
      return opened.seal;
    } catch (error) {
      if (error instanceof KmsError && error.code === 'sealed' && keys.keys.keyFile === undefined) return undefined;
      throw error;
    }
  }

  async #look(): Promise<void> {
    try {
      await this.#follower.look();
      this.#problem = (await this.#partedFrom()) ?? this.#follower.doubt ?? this.#follower.lack;
      this.#advice = this.#problem === undefined ? undefined : 'it follows all the same; do what the message says';
    } catch (error) {
      this.#problem = reasonOf(error);
      this.#advice = adviceOn(error);
    }
    // Reported once, not at each look. A problem gone by the next look is not reported.
    const { onEvent } = this.#options;
    if (this.#problem === this.#said) return;
    if (this.#problem === undefined) onEvent?.({ level: 'info', message: `following ${this.#mark.from}` });
    else onEvent?.({ level: 'warn', message: `following ${this.#mark.from}: ${this.#problem}` });
    this.#said = this.#problem;
  }

  /** A warning only: it goes on following the latest life. */
  async #partedFrom(): Promise<string | undefined> {
    const { directory } = this.#follower.shipped ?? {};
    const own = this.#follower.seal?.keysFor(systemDir);
    const beside =
      directory && (await lifeBeside(this.#places.source, await this.#directories(), directory, own && { own }));
    if (!directory || !beside) return undefined;
    const { message, hint } = parted(beside, directory, this.#mark.from, standbyNames);
    return `${message}; ${hint}`;
  }
}

/** Undefined for what passes by itself. */
function adviceOn(error: unknown): string | undefined {
  if (!(error instanceof KmsError) || error.code === 'unavailable') return undefined;
  return `it keeps what it has, and goes on once that is put right${error.hint === undefined ? '' : `: ${error.hint}`}`;
}

function reached(state: ShippedState | undefined): StandbyStatus['proven'] {
  return state ? { at: new Date(state.point.at).toISOString(), transactions: transactionsIn(state) } : null;
}

export async function readMark(data: string): Promise<Mark | undefined> {
  const files = nodeFiles(data);
  if (!(await files.exists(standbyMark))) return undefined;
  const mark = markIn(parseJson(await files.read(standbyMark, longestLine)));
  if (mark) return mark;
  throw new KmsError('corrupt', `${inDir(data, standbyMark)}: expected the notes of a standby`, {
    hint: 'it was damaged, or written by a newer kms: remove the directory, and start the standby again',
  });
}

/** Undefined for anything else: the directory may be one that somebody else made. */
function markIn(value: unknown): Mark | undefined {
  if (!isJsonObject(value) || value.format !== 1) return undefined;
  const { id, from, proven, reach } = value;
  if (!isHex(id, 32) || typeof from !== 'string') return undefined;
  const state = provenIn(proven);
  const far = reachIn(reach);
  if ((proven !== undefined && !state) || (reach !== undefined && !far)) return undefined;
  return { format: 1, id, from, ...(state && { proven: state }), ...(far && { reach: far }) };
}

function provenIn(value: unknown): Mark['proven'] {
  const { directory, point } = isJsonObject(value) ? value : {};
  const read = readPoint(point);
  return typeof directory === 'string' && parseShippedDirectory(directory) && read
    ? { directory, point: read }
    : undefined;
}

function reachIn(value: unknown): Mark['reach'] {
  const { directory, at } = isJsonObject(value) ? value : {};
  return typeof directory === 'string' && parseShippedDirectory(directory) && isCount(at)
    ? { directory, at }
    : undefined;
}

/** Throws `refused` for a mark whose author may be another user: it would choose which appliance is stopped. */
async function needOwnMark(data: string): Promise<void> {
  const isOthers = await Promise.all([realpath(data), inDir(data, standbyMark)].map(async (p) => isOfAnother(await p)));
  if (!isOthers.includes(true)) return;
  throw new KmsError('refused', `${data}: belongs to another user, and it alone says what is followed`, {
    hint: 'type what it follows, with --from DIR, or run this as its owner',
  });
}

async function writeMark(data: string, mark: Mark): Promise<void> {
  await nodeFiles(data).replace(standbyMark, utf8(`${JSON.stringify(mark)}\n`));
}

/** Whether the directory holds an appliance that the standby there took over. */
export async function hasTakenOver(data: string): Promise<boolean> {
  const files = nodeFiles(resolve(data));
  if ((await dataDirState(resolve(data))) !== 'whole' || !(await files.exists(standbyMark))) return false;
  // The takeover may have been cut off before this cleanup.
  await clearStandby(files);
  return true;
}

/** `known`: it must already be a standby's. */
async function needStandby(data: string, known: boolean): Promise<void> {
  const state = await dataDirState(data);
  if (state === 'standby' || (!known && (state === 'missing' || state === 'empty'))) return;
  if (state === 'whole') {
    throw new KmsError('refused', `${data}: holds an appliance, not a standby; if it was one, it took over`, {
      hint: 'serve it with `kms serve`, or give a new directory with --data',
    });
  }
  const problem = known ? 'is not the directory of a standby' : 'is not empty; nothing was changed';
  throw new KmsError('refused', `${data}: ${problem}`, {
    hint: known ? 'make one with `kms standby --from DIR --data NEWDIR`' : 'give a new directory with --data',
  });
}

/** A standby follows shipped data, not an appliance's own directory, and not another standby. */
async function refuseDataDirectory(from: string): Promise<void> {
  for (const dir of [from, dirname(from), dirname(dirname(from))]) {
    const files = foreignFiles({ path: dir });
    const isStandbys = await files.exists(standbyMark);
    if (isStandbys || (dir === from && (await files.exists(lockFile)))) {
      throw new KmsError('refused', `${from}: is ${isStandbys ? "a standby's" : 'a data directory'}, not shipped to`, {
        hint: 'give the directory of `kms serve --ship-to`; a standby of a standby follows the same one',
      });
    }
  }
}
