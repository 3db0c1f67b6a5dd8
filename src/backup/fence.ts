// A fence ends one life of an appliance: whoever takes over raises it in the directory to which that life ships, and
// the one that lives on as before answers nobody from then on, also when it comes back later. It says so in the
// directory too, once it has stopped and shipped the last of it, so that whoever takes over knows that nothing is
// missing. A directory that both can see is no vote: where one of them cannot see it, only a lease keeps them apart.
//
//   file = JSON TAB mac (64 hex digits) LF
//   mac  = HMAC-SHA256(backup key of the appliance's own store, label LF directory's name LF JSON)
import { setTimeout } from 'node:timers/promises';
import { activityRecord } from '../core/activity.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import { KmsError, reasonOf, systemCode } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { fencedMark, nextEpoch } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Tenants } from '../storage/served-tenants.ts';
import type { SystemStore } from '../storage/stores.ts';
import type { Files } from '../store/files.ts';
import { isCount, isHex, parseJson } from './format.ts';
import { journalFile, type PointKeys, parseShippedDirectory } from './ship-journal.ts';
import { longestFence } from './shipped-bounds.ts';

export interface Fence {
  /** Who took over: the random id of the standby, hexadecimal. */
  readonly by: string;
  /** Its machine. */
  readonly host: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The life that it begins. */
  readonly epoch: number;
}

/** In the shipped directory of the life that it ends. */
const fenceFile = 'kms.fence';
/** The same: what the one that it stopped says. */
const stoppedFile = 'kms.fence.stopped';

const labels = { fence: 'kms/fence/v1', stopped: 'kms/fence-stopped/v1' };

/** A shipped directory as those see it who have the keys. */
export interface Fenced {
  /** The directory's own. */
  readonly files: Files;
  /** Its name. */
  readonly directory: string;
  readonly keys: PointKeys;
}

type Sealed = Pick<Fenced, 'directory' | 'keys'>;

function line({ directory, keys }: Sealed, label: string, value: object): Uint8Array {
  const json = JSON.stringify({ ...value, keyEpoch: keys.epoch });
  return utf8(`${json}\t${macOf({ directory, keys }, label, json, keys.epoch)}\n`);
}

/** Undefined for what was not made with these keys. */
function signedValue(
  { directory, keys }: Sealed,
  label: string,
  bytes: Uint8Array,
): Record<string, unknown> | undefined {
  const [json = '', mac = '', ...more] = new TextDecoder().decode(bytes).split('\t');
  if (more.length > 0) return undefined;
  const value = parseJson(utf8(json));
  if (!isJsonObject(value) || !isCount(value.keyEpoch)) return undefined;
  try {
    return `${macOf({ directory, keys }, label, json, value.keyEpoch)}\n` === mac ? value : undefined;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function macOf({ directory, keys }: Sealed, label: string, json: string, keyEpoch: number): string {
  return toHex(hmacSha256(keys.key('backup', keyEpoch))(utf8(`${label}\n${directory}\n${json}`)));
}

function fenceOf(sealed: Sealed, bytes: Uint8Array): Fence | undefined {
  return fenceIn(signedValue(sealed, labels.fence, bytes) ?? {});
}

function fenceIn({ by, host, at, epoch }: Record<string, unknown>): Fence | undefined {
  if (!isHex(by, 32) || typeof host !== 'string' || !isCount(at) || !isCount(epoch)) return undefined;
  return { by, host, at, epoch };
}

/** Undefined where there is none. Throws `corrupt` for one that was damaged, or that somebody without the keys made. */
export async function readFence({ files, ...sealed }: Fenced): Promise<Fence | undefined> {
  if (!(await files.exists(fenceFile))) return undefined;
  const fence = fenceOf(sealed, await files.read(fenceFile, longestFence));
  if (fence) return fence;
  throw new KmsError('corrupt', `${sealed.directory}/${fenceFile} does not verify`, {
    hint: 'it is damaged, or was not made by an appliance: find out whether a standby took over, and only then remove it',
  });
}

/** What stands in a fence, if there is one, for whoever has no keys: anybody may have written it. */
export async function fenceSaid(files: Files): Promise<Partial<Fence> | undefined> {
  if (!(await files.exists(fenceFile))) return undefined;
  const [json = ''] = new TextDecoder().decode(await files.read(fenceFile, longestFence)).split('\t');
  const value = parseJson(utf8(json));
  return (isJsonObject(value) ? fenceIn(value) : undefined) ?? {};
}

/** How long a fence that cannot be read is given to become one, in milliseconds. */
const settling = 2000;

/**
 * Raises a fence, durable when this resolves, or finds the one that the same standby raised before, which stands.
 * Throws `refused` where another's does. One that does not verify is what a crash left of raising it, and is replaced.
 */
export async function raiseFence(
  fenced: Fenced,
  fence: Fence,
  pause: (milliseconds: number) => Promise<unknown> = (milliseconds) => setTimeout(milliseconds),
): Promise<Fence> {
  const { files } = fenced;
  if (!(await makes(files, fenceFile, line(fenced, labels.fence, fence)))) {
    const found = await readFence(fenced).catch(async (error: unknown) => {
      if (!(error instanceof KmsError) || error.code !== 'corrupt') throw error;
      await pause(settling);
      return readFence(fenced).catch(() => undefined);
    });
    if (found && found.by !== fence.by) throw takenBy(found);
    // Its bytes may not be durable.
    await files.replace(fenceFile, line(fenced, labels.fence, found ?? fence));
  }
  await files.syncDir('.');
  const stands = await readFence(fenced);
  if (stands?.by === fence.by) return stands;
  throw stands
    ? takenBy(stands)
    : new KmsError('unavailable', `${fenced.directory}: the fence is gone again; try again`);
}

/** Whether the file was made; false where there is one. */
async function makes(files: Files, name: string, bytes: Uint8Array): Promise<boolean> {
  try {
    const file = await files.openAppend(name, true);
    try {
      await file.append(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

export function takenBy({ host, at }: Fence): KmsError {
  return new KmsError('refused', `another standby, on ${host}, took over at ${new Date(at).toISOString()}`, {
    hint:
      'use that one, and let this one follow what it ships; where that one is lost for good, --unfenced takes over in ' +
      'its place',
  });
}

/**
 * Says in the directory that the one that the fence stopped answers nobody any more, and has shipped all it had: how
 * long the journal is with it, since a network file system may show this before that.
 */
export async function confirmStop(fenced: Fenced, { by }: Fence, at: number): Promise<void> {
  const { files } = fenced;
  const journal = (await files.exists(journalFile)) ? await files.size(journalFile) : 0;
  await files.replace(stoppedFile, line(fenced, labels.stopped, { by, at, journal }));
}

/** The bytes of the whole journal, where the one that the fence stopped has said so. */
export async function stoppedWith({ files, ...sealed }: Fenced, fence: Fence): Promise<number | undefined> {
  if (!(await files.exists(stoppedFile))) return undefined;
  const { by, journal } = signedValue(sealed, labels.stopped, await files.read(stoppedFile, longestFence)) ?? {};
  return by === fence.by && isCount(journal) ? journal : undefined;
}

/** Remembers a fence in the data directory, where it holds also while the shipped directory is out of reach. */
export async function rememberFence(data: Pick<Files, 'replace'>, fence: Fence): Promise<void> {
  await data.replace(fencedMark, utf8(`${JSON.stringify(fence)}\n`));
}

/** What everybody is told whom the one that was fenced off would have answered. */
export function fencedOff(fence: Fence | undefined, code: 'refused' | 'unavailable' = 'refused'): KmsError {
  const who = fence
    ? `a standby on ${fence.host} took over at ${new Date(fence.at).toISOString()}`
    : 'a standby took over';
  return new KmsError(code, `${who}: this appliance serves no more`, {
    hint:
      'use the one that took over; `kms serve --take-back` serves this one all the same, in a new epoch: do that only ' +
      'when the other is stopped for good, since what was written there is not here',
  });
}

interface OpeningDeps {
  /** Of the data directory. */
  readonly files: Files;
  /** The directories of this life, wherever it ships to or did. */
  readonly shipped: readonly Fenced[];
  /** Whether the administrator wants it served all the same. */
  readonly takesBack: boolean;
}

/**
 * Throws `refused` where a standby took over from the appliance that is being opened; remembers that, and changes
 * nothing else. Answers what is to be taken back, where that is wanted.
 */
export async function needNoFence({ files, shipped, takesBack }: OpeningDeps): Promise<{ from?: Fence } | undefined> {
  const noted = await rememberedFence(files);
  const raised = await fenceAtStart(shipped, takesBack);
  if (!noted && !raised) return undefined;
  const fence = raised ?? noted?.from;
  if (takesBack) return fence ? { from: fence } : {};
  if (raised && !noted) await rememberFence(files, raised);
  throw fencedOff(fence);
}

/** What the data directory remembers. That the mark is there is all that counts. */
export async function rememberedFence(
  files: Pick<Files, 'exists' | 'read'>,
): Promise<{ readonly from: Fence | undefined } | undefined> {
  if (!(await files.exists(fencedMark))) return undefined;
  const noted = parseJson(await files.read(fencedMark));
  return { from: fenceIn(isJsonObject(noted) ? noted : {}) };
}

/** For how long a directory may keep a start waiting, in milliseconds: a network file system can hang for ever. */
const patience = 5000;

/** Undefined too where a directory is out of reach, which shipping says. */
async function fenceAtStart(shipped: readonly Fenced[], takesBack: boolean): Promise<Fence | undefined> {
  for (const each of shipped) {
    const over = new AbortController();
    const late = setTimeout(patience, undefined, { signal: over.signal }).catch(() => undefined);
    try {
      const fence = await Promise.race([readFence(each), late]);
      if (fence) return fence;
    } catch (error) {
      if (error instanceof KmsError && !takesBack) throw error;
    } finally {
      over.abort();
    }
  }
  return undefined;
}

interface TakingBack {
  readonly files: Files;
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
  readonly world: World;
  readonly from: Fence | undefined;
  /** Where the one that took over would ship to, and every other life of it. */
  readonly successors: readonly Fenced[];
  readonly host: string;
}

/**
 * Begins another epoch, whose directory has no fence, and raises one before the one that took over, where it ships to
 * the same place. Cut off before its end it is done again.
 */
export async function takeBack({ files, system, tenants, world, from, successors, host }: TakingBack): Promise<void> {
  // Later than that of the one that took over, whatever the clocks say.
  const now = Math.max(world.now(), (from?.epoch ?? 0) + 1);
  const { number } = await system.transaction((tx) => nextEpoch(tx.settings, now));
  const props = { epoch: number, ...(from && { from: from.epoch, host: from.host }) };
  for (const { handle } of tenants.all) {
    await handle.store.transaction((tx) =>
      tx.record(activityRecord(world, { keyid: localCaller.id, action: 'system.take-back', props })),
    );
  }
  const fence = { by: toHex(world.random(16)), host, at: world.now(), epoch: number };
  for (const successor of successors) {
    if ((parseShippedDirectory(successor.directory)?.epoch ?? number) >= number) continue;
    // Where it cannot be told, it has to be stopped by hand, as everybody is told who takes back.
    if (await successor.files.exists(journalFile).catch(() => false))
      await raiseFence(successor, fence).catch(() => {});
  }
  if (await files.exists(fencedMark)) await files.remove(fencedMark);
  await files.syncDir('.');
}

interface WatchDeps extends Fenced {
  /** Ends serving; tried again until it succeeds. */
  onFenced(fence: Fence): Promise<void>;
  readonly onEvent: (event: ApplianceEvent) => void;
}

/** How often the fence is looked for, in milliseconds; apart from shipping, which may take its time. */
const usualPause = 1000;

export class FenceWatch {
  readonly #deps: WatchDeps;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #problem: string | undefined;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  start(pause = usualPause): void {
    void this.#look().then((isOver) => {
      if (!isOver && !this.#closed) this.#timer = globalThis.setTimeout(() => this.start(pause), pause).unref();
    });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Whether there is nothing left to look for. */
  async #look(): Promise<boolean> {
    try {
      const fence = await readFence(this.#deps);
      if (fence) await this.#deps.onFenced(fence);
      this.#problem = undefined;
      return fence !== undefined;
    } catch (cause) {
      const problem = reasonOf(cause);
      // Once, not at each look. That the directory is out of reach shipping says.
      if (problem !== this.#problem && cause instanceof KmsError) {
        this.#deps.onEvent({ level: 'error', message: problem, cause });
      }
      this.#problem = problem;
      return false;
    }
  }
}
