// Taking over from the appliance that a standby follows: a fence before it, the time to stop and to ship the last of
// it, what arrived by then as an appliance in the standby's directory, and its next epoch. Cut off at any step it is
// done again: the fence that stands is its own, and without a seal in its place nothing serves the directory.

import type { TakenOverAnswer } from '../api/local/copies.ts';
import type { World } from '../core/context.ts';
import { KmsError, systemError } from '../errors.ts';
import { systemDir } from '../platform/data-dir.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { type Fence, type Fenced, raiseFence, readFence, stoppedWith, takenBy } from './fence.ts';
import type { Follower, Proven, ShippedState } from './follow.ts';
import { lifeBeside, parted } from './lives.ts';
import { type RestoreSource, restoreInto } from './restore.ts';
import { type ShippedDirectory, shippedSeal } from './ship-journal.ts';
import { sourceAt } from './ship-source.ts';

/** What of one shipped directory lies where. */
export interface Places {
  source(directory: string): Files;
  copy(directory: string): Files;
}

interface TakeOverDeps extends Places {
  /** What was named to follow: of several lives in it the latest. */
  readonly from: string;
  /** All of them; of one that was named itself, that one. */
  directories(): Promise<readonly ShippedDirectory[]>;
  /** All that lies beside the one that is followed, and that one. */
  all(): Promise<readonly ShippedDirectory[]>;
  /** The newest seal in such a directory. Throws where it does not open. */
  openBeside(directory: string): Promise<Seal>;
  /** The directory that becomes the appliance's, and its files. */
  readonly root: string;
  readonly data: Files;
  readonly follower: Follower;
  /** Of the standby, and of its machine. */
  readonly id: string;
  readonly host: string;
  readonly wasm: Uint8Array;
  readonly world: World;
  pause(milliseconds: number): Promise<unknown>;
}

export interface TakingOver {
  /** For how long whoever is fenced off is given to say that it stopped, in milliseconds. */
  readonly wait: number;
  /** Without it, nothing tells the other to stop: where what is shipped to is out of reach. */
  readonly fence: boolean;
  /** Takes the last state that was proven where the newest does not verify, or is out of reach. */
  readonly acceptOlder: boolean;
}

/** How often the other's word that it stopped is looked for, in milliseconds. */
const shortPause = 100;
/** How long the end of a journal is waited for at least, in milliseconds. */
const settling = 5000;

type StopDeps = Omit<TakeOverDeps, 'root' | 'data' | 'wasm'>;
type Fencing = Pick<TakeOverDeps, 'source' | 'follower'>;

/** What the one that lived before left. */
export interface Stopped<S extends ShippedState> {
  readonly last: S;
  readonly seal: Seal;
  /** Of the state `last`. */
  readonly source: RestoreSource;
  /** Of the epoch that follows. */
  readonly number: number;
  /** Whether that one has said that it stopped, and everything that it answered is in `last`. */
  readonly isComplete: boolean;
}

type Newest<S extends ShippedState> = (deps: StopDeps, how: TakingOver, before: Proven) => Promise<S>;

/** Has the one that lives stop, unless it is not to be told, and takes the last of it, as `newestOf` gives it. */
export async function stopTheOther<S extends ShippedState>(
  deps: StopDeps,
  how: TakingOver,
  newestOf: Newest<S>,
): Promise<Stopped<Proven | S>> {
  const { follower, world } = deps;
  // What does not verify is found before anybody is stopped for it.
  const first = await newest(deps, how);
  await needOneLife(deps, first.directory, how);
  const fenced = fencedBy(deps, first);
  const fence = how.fence ? await fenceOff(deps, fenced, first, how) : undefined;
  const last = fence ? await lastOf(deps, how, fence.journal, first, newestOf).catch(stopped) : first;
  const { directory, point } = last;
  if (directory.name !== first.directory.name) throw anotherLife(directory.name);
  if (fence) await needOwnFence(fenced, fence.raised);
  const copy = deps.copy(directory.name);
  const seal = sealOf(follower);
  const source = await sourceAt(copy, await shippedSeal(copy, [point]), seal, [point]);
  const number = fence?.raised.epoch ?? Math.max(directory.epoch + 1, world.now());
  const isComplete = fence?.areOthersTold === true && follower.journalBytes === fence.journal;
  return { last, seal, source, number, isComplete };
}

export async function takeOver(
  deps: TakeOverDeps,
  how: TakingOver,
): Promise<Omit<TakenOverAnswer, 'data' | 'keyFile' | 'keyFileMade'>> {
  const { data, world } = deps;
  const { last, seal, source, number, isComplete } = await stopTheOther(deps, how, newest);
  const { proof, heads } = last;
  const stores = { root: deps.root, files: data, wasm: deps.wasm };
  const { epoch } = await restoreInto(stores, seal, source, world, number);
  const { applianceId } = seal;
  await clearStandby(data);
  return {
    ...{ applianceId, epoch: epoch.number, madeAt: source.origin.madeAt, isComplete },
    ...{ stores: proof.stores, transactions: proof.transactions, activities: proof.activities, lacks: proof.lacks },
    heads: Object.fromEntries(heads),
  };
}

/** Copies of what is shipped, in the directory of a standby. */
export const copiesDir = 'standby';

/**
 * Removes the copies once it took over. The mark stays, so that whoever starts the standby again, as a service does,
 * has the appliance served.
 */
export async function clearStandby(data: Files): Promise<void> {
  await data.removeDir(copiesDir);
}

/** The newest state, proven; `before`: a state that was, a moment ago. */
async function newest({ follower }: StopDeps, { fence, acceptOlder }: TakingOver, before?: Proven): Promise<Proven> {
  try {
    await follower.look().catch((error: unknown) => {
      // What is here is thrown away by then, and copied once more.
      if (error instanceof KmsError && error.code === 'corrupt') return follower.look(true);
      throw error;
    });
  } catch (error) {
    if (fence && !acceptOlder) throw unreached(systemError(error, 'what is shipped to'));
    await follower.recall().catch(() => {});
  }
  try {
    return await follower.prove(before);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'corrupt') throw error;
    if (!acceptOlder) throw unreached(error);
    return follower.proveAgain();
  }
}

/** The newest state as it arrived, for whoever proves it where it goes; proven, where an older one would do. */
export async function newestArrived(deps: StopDeps, how: TakingOver, before: Proven): Promise<ShippedState> {
  const { follower } = deps;
  if (how.acceptOlder) return newest(deps, how, before);
  await follower.look();
  return follower.copied ?? before;
}

function fencedBy({ source, follower }: Fencing, { directory: { name } }: Pick<ShippedState, 'directory'>): Fenced {
  return { files: source(name), directory: name, keys: sealOf(follower).keysFor(systemDir) };
}

/**
 * The newest state once the fence stands. A network file system may show the word of the one that stopped before the
 * end of the journal, which is then waited for.
 */
async function lastOf<S extends ShippedState>(
  deps: StopDeps,
  how: TakingOver,
  journal: number | undefined,
  first: Proven,
  newestOf: Newest<S>,
): Promise<S> {
  for (let waited = 0; ; waited += shortPause) {
    const last = await newestOf(deps, how, first);
    const isShort = journal !== undefined && (deps.follower.journalBytes ?? 0) < journal;
    if (!isShort || waited >= Math.max(how.wait, settling)) return last;
    await deps.pause(shortPause);
  }
}

/** How the life that is meant is named; a running standby follows what it was started with. */
export const standbyNames = 'end the standby, and promote with --from';

/** Nobody is stopped for the latest life where an earlier one went on beside it. */
async function needOneLife(deps: StopDeps, directory: ShippedDirectory, { fence }: TakingOver): Promise<void> {
  const look = async () => lifeBeside(deps.source, await deps.directories(), directory);
  // Unfenced, what is shipped to may well be out of reach.
  const beside = fence ? await look() : await look().catch(() => undefined);
  if (beside) throw parted(beside, directory, deps.from, standbyNames);
}

/**
 * Raises the fence before the one that is followed and before every other life that ships beside it, and waits for the
 * word of the first.
 */
async function fenceOff(
  deps: StopDeps,
  fenced: Fenced,
  { directory }: ShippedState,
  { wait }: TakingOver,
): Promise<{ raised: Fence; journal: number | undefined; areOthersTold: boolean }> {
  const { id, host, world, pause } = deps;
  const at = world.now();
  const lives = (await deps.all()).filter(({ appliance }) => appliance === directory.appliance);
  const epoch = Math.max(at, ...[directory, ...lives].map((life) => life.epoch + 1));
  const raised = await raiseFence(fenced, { by: id, host, at, epoch }, pause);
  let areOthersTold = true;
  for (const { name } of lives.filter((life) => life.name !== directory.name && life.epoch < raised.epoch)) {
    areOthersTold = (await fenceOther(deps, name, raised)) && areOthersTold;
  }
  for (let waited = 0; ; waited += shortPause) {
    const journal = await stoppedWith(fenced, raised);
    if (journal !== undefined || waited >= wait) return { raised, journal, areOthersTold };
    await pause(shortPause);
  }
}

/** Whether a fence stands there that its life can verify: that may have other keys by now than the one followed. */
async function fenceOther(deps: StopDeps, name: string, fence: Fence): Promise<boolean> {
  const own = await deps.openBeside(name).catch(() => undefined);
  try {
    const fenced = {
      files: deps.source(name),
      directory: name,
      keys: (own ?? sealOf(deps.follower)).keysFor(systemDir),
    };
    // One that stands there ended that life already.
    if (await readFence(fenced).catch(() => undefined)) return true;
    await raiseFence(fenced, fence, deps.pause);
    return own !== undefined;
  } catch {
    return false;
  } finally {
    own?.wipe();
  }
}

function sealOf({ seal }: Follower): Seal {
  if (seal) return seal;
  throw new KmsError('sealed', 'the master key is not available', { hint: 'give the key with --key-file' });
}

/** Whether the fence of `id` stands before this life. Throws `refused` where another's does. */
export async function isFencedBy(deps: Fencing & Pick<TakeOverDeps, 'id'>, state: Pick<ShippedState, 'directory'>) {
  const fence = await readFence(fencedBy(deps, state));
  if (fence && fence.by !== deps.id) throw takenBy(fence);
  return fence !== undefined;
}

async function needOwnFence(fenced: Fenced, { by }: Fence): Promise<void> {
  if ((await readFence(fenced))?.by === by) return;
  throw new KmsError('refused', 'the fence that was raised is gone or another stands in its place; nobody took over', {
    hint: 'find out whether another standby took over; if none did, do it again',
  });
}

/** What is wrong once the fence stands. */
function stopped(error: unknown): never {
  if (!(error instanceof KmsError)) throw error;
  throw new KmsError(
    error.code,
    `${error.message}; the fence stands, so the other serves no more, and nobody took over`,
    {
      hint: 'do it again, with --accept-older where what came last is damaged',
      cause: error,
    },
  );
}

function anotherLife(directory: string): KmsError {
  return new KmsError('refused', `another life of the appliance has begun to ship to ${directory}; nobody took over`, {
    hint: 'find out which of them serves; this standby follows the newer one now',
  });
}

function unreached(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  return new KmsError(error.code, `${error.message}`, {
    hint:
      'nobody took over; where what came last is damaged, --accept-older takes the last state that was proven; where what is shipped to ' +
      'is lost, --unfenced takes what is here, and tells the other nothing: stop that one first, for good',
    cause: error,
  });
}
