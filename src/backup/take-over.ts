// Taking over from the appliance that a standby follows: a fence, time for the primary to stop and ship the rest, a
// restore of what arrived into the standby's directory, and the next epoch. If cut off at any step it is repeated: the
// fence that stands is its own, and without a seal the directory is not served.

import type { TakenOverAnswer } from '../api/local/copies.ts';
import type { World } from '../core/context.ts';
import { KmsError, systemError } from '../errors.ts';
import { sealFile, systemDir } from '../platform/data-dir.ts';
import { latestEpoch } from '../platform/epoch.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { type Fence, type Fenced, raiseFence, readFence, stoppedWith, takenBy } from './fence.ts';
import type { Follower, Proven } from './follow.ts';
import type { ShippedState } from './known-state.ts';
import { isEmptyLife, isProvenLife, type LifeKeys, lifeBeside, parted, unlessForeign } from './lives.ts';
import { restoreInto } from './restore.ts';
import type { RestoreSource } from './restore-source.ts';
import { type ShippedDirectory, shippedSeal } from './ship-journal.ts';
import { sourceAt } from './ship-source.ts';

/** Files of a shipped directory, at the source and in the copy. */
export interface Places {
  source(directory: string): Files;
  copy(directory: string): Files;
}

interface TakeOverDeps extends Places {
  /** The followed directory; if it has several lives, the latest counts. */
  readonly from: string;
  /** All lives in it; if a life was named, only that one. */
  directories(): Promise<readonly ShippedDirectory[]>;
  /** All lives beside the followed one, and that one. */
  all(): Promise<readonly ShippedDirectory[]>;
  /** The newest seal in such a directory. Throws if it does not open. */
  openBeside(directory: string): Promise<Seal>;
  /** The directory that becomes the appliance's, and its files. */
  readonly root: string;
  readonly data: Files;
  readonly follower: Follower;
  /** The standby's id, and its host name. */
  readonly id: string;
  readonly host: string;
  readonly wasm: Uint8Array;
  readonly world: World;
  pause(milliseconds: number): Promise<unknown>;
  /** Throws if a state cannot be restored for lack of room; absent if it is restored elsewhere. */
  needRoom?(source: RestoreSource): Promise<void>;
}

export interface TakingOver {
  /** Milliseconds that the fenced appliance gets to confirm that it stopped. */
  readonly wait: number;
  /** Without it, the primary is not told to stop: for a shipped directory out of reach. */
  readonly fence: boolean;
  /** Accepts the last proven state if the newest does not verify, or is out of reach. */
  readonly acceptOlder: boolean;
}

/** Milliseconds between two checks for the confirmation. */
const shortPause = 100;
/** Least milliseconds to wait for the end of a journal. */
const settling = 5000;

type StopDeps = Omit<TakeOverDeps, 'root' | 'data' | 'wasm'>;
type Fencing = Pick<TakeOverDeps, 'source' | 'follower'>;

/** Remains of the former primary's life. */
export interface Stopped<S extends ShippedState> {
  readonly last: S;
  readonly seal: Seal;
  /** The data of the state `last`. */
  readonly source: RestoreSource;
  /** Number of the next epoch. */
  readonly number: number;
  /** Whether the former primary confirmed its stop, so that `last` holds all it acknowledged. */
  readonly isComplete: boolean;
}

type Newest<S extends ShippedState> = (deps: StopDeps, how: TakingOver, before: Proven) => Promise<S>;

/** Stops the primary, unless no fence is wanted, and takes its last state, by `newestOf`. */
export async function stopTheOther<S extends ShippedState>(
  deps: StopDeps,
  how: TakingOver,
  newestOf: Newest<S>,
): Promise<Stopped<Proven | S>> {
  const { follower, world } = deps;
  // A state that does not verify must show before the primary is stopped.
  const first = await newest(deps, how);
  await needOneLife(deps, first.directory, how);
  // Afterwards neither would serve.
  await deps.needRoom?.(await sourceOf(deps, first));
  const fenced = fencedBy(deps, first);
  const fence = how.fence ? await fenceOff(deps, fenced, first, how) : undefined;
  const last = fence ? await lastOf(deps, how, fence.journal, first, newestOf).catch(stopped) : first;
  const { directory } = last;
  if (directory.name !== first.directory.name) throw anotherLife(directory.name);
  if (fence) await needOwnFence(fenced, fence.raised);
  const seal = sealOf(follower);
  const source = await sourceOf(deps, last);
  const number = fence?.raised.epoch ?? Math.max(directory.epoch + 1, world.now());
  const isComplete = fence?.areOthersTold === true && follower.journalBytes === fence.journal;
  return { last, seal, source, number, isComplete };
}

async function sourceOf({ copy, follower }: StopDeps, { directory, point }: ShippedState): Promise<RestoreSource> {
  const files = copy(directory.name);
  return sourceAt(files, await shippedSeal(files, [point]), sealOf(follower), [point]);
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

/** Copies of shipped data, in the directory of a standby. */
export const copiesDir = 'standby';

/**
 * Removes the copies after the takeover. The mark stays, so that starting the standby again, as a service does, serves
 * the appliance.
 */
export async function clearStandby(data: Files): Promise<void> {
  await data.removeDir(copiesDir);
}

/** Tries again, after a wait, while something is just arriving: that is `unavailable`. */
export async function onceArrived<R>(run: () => Promise<R>, wait: () => Promise<unknown>): Promise<R> {
  for (let tries = 5; ; tries--) {
    try {
      return await run();
    } catch (error) {
      if (tries === 0 || !(error instanceof KmsError) || error.code !== 'unavailable') throw error;
      await wait();
    }
  }
}

function lookSettled({ follower, pause }: StopDeps): Promise<void> {
  return onceArrived(
    () => follower.look(),
    () => pause(shortPause),
  );
}

/** The newest state, proven; `before`: a state proven a moment ago. */
async function newest(deps: StopDeps, { fence, acceptOlder }: TakingOver, before?: Proven): Promise<Proven> {
  const { follower } = deps;
  try {
    await lookSettled(deps).catch((error: unknown) => {
      // The local copy of it has been discarded by then, so it is copied again.
      if (error instanceof KmsError && error.code === 'corrupt') return follower.look(true);
      throw error;
    });
  } catch (error) {
    if (fence && !acceptOlder) throw unreached(systemError(error, 'what is shipped to'));
    await follower.recall().catch(() => {});
  }
  // Before the primary is stopped, and not after.
  if (!acceptOlder && !before) needNoDoubt(follower);
  try {
    const proven = await follower.prove(before);
    if (!acceptOlder) follower.needNewest(proven);
    return proven;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'sealed') throw error;
    if (!acceptOlder) throw error instanceof KmsError && error.code === 'corrupt' ? unreached(error) : error;
    return follower.proveAgain().catch(() => olderThere(follower, error));
  }
}

/** Proves what is shipped, although it is older than what had arrived: nothing that is here opens. */
async function olderThere(follower: Follower, error: unknown): Promise<Proven> {
  try {
    await follower.lookAtOlder();
    return await follower.prove();
  } catch {
    throw error;
  }
}

/** The newest state as it arrived, unproven, for a caller that proves it; proven if an older one would do. */
export async function newestArrived(deps: StopDeps, how: TakingOver, before: Proven): Promise<ShippedState> {
  const { follower } = deps;
  if (how.acceptOlder) return newest(deps, how, before);
  await lookSettled(deps);
  return follower.copied ?? before;
}

/** Throws if a directory is named like a life and was left out: a later life could be damaged. */
function needNoDoubt({ doubt }: Follower): void {
  if (doubt === undefined) return;
  throw new KmsError('corrupt', doubt, {
    hint:
      'this standby did not take over; end it if it is running, and name the life that you mean with --from; or take ' +
      'the latest that verifies with --accept-older',
  });
}

function fencedBy({ source, follower }: Fencing, { directory: { name } }: Pick<ShippedState, 'directory'>): Fenced {
  return { files: source(name), directory: name, keys: sealOf(follower).keysFor(systemDir) };
}

/**
 * The newest state once the fence stands. A network file system may show the confirmation before the end of the
 * journal, so this waits for the journal.
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

/** The way to name a life; a running standby follows the one that it was started with. */
export const standbyNames = 'stop the standby, and promote with --from';

/** Throws if an earlier life went on beside the latest: the primary must not be stopped for the wrong one. */
async function needOneLife(deps: StopDeps, directory: ShippedDirectory, { fence }: TakingOver): Promise<void> {
  const look = async () => lifeBeside(deps.source, await deps.directories(), directory, keysOf(deps));
  // Without a fence, the shipped directory may well be out of reach.
  const beside = fence ? await look() : await look().catch(() => undefined);
  if (beside) throw parted(beside, directory, deps.from, standbyNames);
}

function keysOf({ follower, openBeside }: Pick<StopDeps, 'follower' | 'openBeside'>): LifeKeys {
  return { own: sealOf(follower).keysFor(systemDir), openBeside };
}

interface OtherLife extends ShippedDirectory {
  /** Whether its journal verifies: only then its epoch counts. */
  readonly isProven: boolean;
}

/** The lives of the appliance beside the followed one. Undefined if there are too many to look at. */
async function othersOf(deps: StopDeps, { name: own, appliance }: ShippedDirectory): Promise<OtherLife[] | undefined> {
  const all = await deps.all().catch((error: unknown) => {
    if (error instanceof KmsError && error.code === 'refused') return undefined;
    throw error;
  });
  const others: OtherLife[] = [];
  for (const life of all ?? []) {
    const files = deps.source(life.name);
    if (life.name === own || life.appliance !== appliance) continue;
    if ((await isEmptyLife(files).catch(unlessForeign)) !== false) continue;
    const isProven = await isProvenLife(files, life.name, keysOf(deps));
    // No appliance ships without a seal.
    if (!isProven && !(await files.exists(sealFile))) continue;
    others.push({ ...life, isProven });
  }
  return all && others;
}

/** Fences the followed life and every other life that ships beside it, and waits for the confirmation of the first. */
async function fenceOff(
  deps: StopDeps,
  fenced: Fenced,
  { directory }: ShippedState,
  { wait }: TakingOver,
): Promise<{ raised: Fence; journal: number | undefined; areOthersTold: boolean }> {
  const { id, host, world, pause } = deps;
  const at = world.now();
  const others = await othersOf(deps, directory);
  const lives = [directory, ...(others ?? []).filter(({ isProven }) => isProven)];
  const epoch = Math.max(at, ...lives.map((life) => life.epoch + 1));
  needEpoch(epoch);
  const raised = await raiseFence(fenced, { by: id, host, at, epoch }, pause);
  const beside = (others ?? []).filter((life) => life.epoch < raised.epoch);
  const told = await Promise.all(beside.map(({ name }) => fenceOther(deps, name, raised)));
  const areOthersTold = others !== undefined && !told.includes(false);
  for (let waited = 0; ; waited += shortPause) {
    const journal = await stoppedWith(fenced, raised);
    if (journal !== undefined || waited >= wait) return { raised, journal, areOthersTold };
    await pause(shortPause);
  }
}

/** Whether the life `name` now has a fence that it can verify: its keys may differ from the followed one's by now. */
async function fenceOther(deps: StopDeps, name: string, fence: Fence): Promise<boolean> {
  const own = await deps.openBeside(name).catch(() => undefined);
  try {
    const fenced = {
      files: deps.source(name),
      directory: name,
      keys: (own ?? sealOf(deps.follower)).keysFor(systemDir),
    };
    // An existing fence has already ended that life.
    if (await readFence(fenced).catch(() => undefined)) return true;
    await raiseFence(fenced, fence, deps.pause);
    return own !== undefined;
  } catch {
    return false;
  } finally {
    own?.wipe();
  }
}

/** Throws `refused` for an epoch that no directory's name can have, before any other life is stopped for it. */
function needEpoch(epoch: number): void {
  if (epoch <= latestEpoch) return;
  throw new KmsError(
    'refused',
    `the next epoch would be ${epoch}, expected at most ${latestEpoch}; this standby did not take over`,
    {
      hint: 'set this clock right; if the appliance itself is in such an epoch, restore a backup from before it',
    },
  );
}

function sealOf({ seal }: Follower): Seal {
  if (seal) return seal;
  throw new KmsError('sealed', 'the master key is not available', { hint: 'give the key with --key-file' });
}

/** Whether the fence of `id` stands in this life's directory. Throws `refused` if another standby's does. */
export async function isFencedBy(deps: Fencing & Pick<TakeOverDeps, 'id'>, state: Pick<ShippedState, 'directory'>) {
  const fence = await readFence(fencedBy(deps, state));
  if (fence && fence.by !== deps.id) throw takenBy(fence);
  return fence !== undefined;
}

async function needOwnFence(fenced: Fenced, { by }: Fence): Promise<void> {
  if ((await readFence(fenced))?.by === by) return;
  throw new KmsError(
    'refused',
    'the fence that was raised is gone or another stands in its place; this standby did not take over',
    {
      hint: 'find out whether another standby took over; if none did, run this again',
    },
  );
}

/** Adds to an error that the fence already stands. */
function stopped(error: unknown): never {
  if (!(error instanceof KmsError)) throw error;
  throw new KmsError(
    error.code,
    `${error.message}; the fence stands, so the other no longer serves, but this standby did not take over`,
    {
      hint: 'run this again, with --accept-older if what came last is damaged',
      cause: error,
    },
  );
}

function anotherLife(directory: string): KmsError {
  return new KmsError(
    'refused',
    `another life of the appliance has begun to ship to ${directory}; this standby did not take over`,
    {
      hint: 'find out which of them serves; this standby follows the newer one now',
    },
  );
}

function unreached(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  return new KmsError(error.code, `${error.message}`, {
    hint:
      'this standby did not take over; if what came last is damaged, --accept-older takes the last proven state; if ' +
      'the shipped directory is lost, --unfenced takes what is here without telling the other: stop that one first, for good',
    cause: error,
  });
}
