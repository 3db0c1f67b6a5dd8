// A fence ends one life of an appliance: a standby that takes over raises it in the directory to which that life ships,
// and the former primary refuses all requests from then on, even if it comes back later. Once it has stopped and
// shipped the last of its data, the former primary confirms this in the directory, so that the standby knows that
// nothing is missing. A directory visible to both is no vote: if one cannot see it, only a lease keeps them apart.
//
//   file = JSON TAB mac (64 hex digits) LF
//   mac  = HMAC-SHA256(backup key of the appliance's own store, label LF directory's name LF JSON)
import { setTimeout } from 'node:timers/promises';
import { activityRecord } from '../core/activity.ts';
import { expireAnswered } from '../core/approval-ends.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import { KmsError, reasonOf, systemCode } from '../errors.ts';
import { isCount, isHex, isJsonObject } from '../model/json.ts';
import { fencedMark, longestMark } from '../platform/data-dir.ts';
import { nextEpoch } from '../platform/epoch.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Tenants } from '../storage/served-tenants.ts';
import type { SystemStore } from '../storage/stores.ts';
import type { Files } from '../store/files.ts';
import { parseJson } from './format.ts';
import { journalFile, type PointKeys, parseShippedDirectory } from './ship-journal.ts';
import { longestFence } from './shipped-bounds.ts';

export interface Fence {
  /** The standby that took over: its random id, hexadecimal. */
  readonly by: string;
  /** The standby's host name. */
  readonly host: string;
  /** In epoch milliseconds. */
  readonly at: number;
  /** Epoch of the life that it begins. */
  readonly epoch: number;
}

/** In the shipped directory of the life that it ends. */
const fenceFile = 'kms.fence';
/** In the same directory: the former primary's confirmation that it stopped. */
const stoppedFile = 'kms.fence.stopped';

const labels = { fence: 'kms/fence/v1', stopped: 'kms/fence-stopped/v1' };

/** A shipped directory with the keys to verify it. */
export interface Fenced {
  /** Files of the directory. */
  readonly files: Files;
  /** Name of the directory. */
  readonly directory: string;
  readonly keys: PointKeys;
}

type Sealed = Pick<Fenced, 'directory' | 'keys'>;

function line({ directory, keys }: Sealed, label: string, value: object): Uint8Array {
  const json = JSON.stringify({ ...value, keyEpoch: keys.epoch });
  return utf8(`${json}\t${macOf({ directory, keys }, label, json, keys.epoch)}\n`);
}

/** Undefined if it was not made with these keys. */
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

/** Undefined if there is no fence. Throws `corrupt` if it is damaged, or was made without the keys. */
export async function readFence({ files, ...sealed }: Fenced): Promise<Fence | undefined> {
  if (!(await files.exists(fenceFile))) return undefined;
  const fence = fenceOf(sealed, await files.read(fenceFile, longestFence));
  if (fence) return fence;
  throw new KmsError('corrupt', `${sealed.directory}/${fenceFile} does not verify`, {
    hint: 'it is damaged, or was not made by an appliance: find out whether a standby took over, and only then remove it',
  });
}

/** Contents of a fence, if there is one, read without keys: unverified, since anyone may have written it. */
export async function fenceSaid(files: Files): Promise<Partial<Fence> | undefined> {
  if (!(await files.exists(fenceFile))) return undefined;
  const [json = ''] = new TextDecoder().decode(await files.read(fenceFile, longestFence)).split('\t');
  const value = parseJson(utf8(json));
  return (isJsonObject(value) ? fenceIn(value) : undefined) ?? {};
}

/** Milliseconds that an unreadable fence gets to become readable. */
const settling = 2000;

/**
 * Raises a fence, durable when this resolves, or returns an earlier one of the same standby. Throws `refused` if
 * another standby's fence is there. A fence that does not verify is left over from a crash and is replaced.
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
    // The existing bytes may not be durable.
    await files.replace(fenceFile, line(fenced, labels.fence, found ?? fence));
  }
  await files.syncDir('.');
  const stands = await readFence(fenced);
  if (stands?.by === fence.by) return stands;
  throw stands
    ? takenBy(stands)
    : new KmsError('unavailable', `${fenced.directory}: the fence is gone again; try again`);
}

/** Creates the file; false if it exists. */
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
      'use that one, and let this one follow what it ships; if that one is lost for good, --unfenced takes over in ' +
      'its place',
  });
}

/**
 * Confirms in the directory that the fenced appliance has stopped answering and has shipped everything. Includes the
 * length of the journal, since a network file system may show this file before the journal's end.
 */
export async function confirmStop(fenced: Fenced, { by }: Fence, at: number): Promise<void> {
  const { files } = fenced;
  const journal = (await files.exists(journalFile)) ? await files.size(journalFile) : 0;
  await files.replace(stoppedFile, line(fenced, labels.stopped, { by, at, journal }));
}

/** Length in bytes of the complete journal, if the fenced appliance has confirmed its stop. */
export async function stoppedWith({ files, ...sealed }: Fenced, fence: Fence): Promise<number | undefined> {
  if (!(await files.exists(stoppedFile))) return undefined;
  const { by, journal } = signedValue(sealed, labels.stopped, await files.read(stoppedFile, longestFence)) ?? {};
  return by === fence.by && isCount(journal) ? journal : undefined;
}

/** Remembers a fence in the data directory, where it holds even if the shipped directory is out of reach. */
export async function rememberFence(data: Pick<Files, 'replace'>, fence: Fence): Promise<void> {
  await data.replace(fencedMark, utf8(`${JSON.stringify(fence)}\n`));
}

/** The error that a fenced appliance answers every request with. */
export function fencedOff(fence: Fence | undefined, code: 'refused' | 'unavailable' = 'refused'): KmsError {
  const who = fence
    ? `a standby on ${fence.host} took over at ${new Date(fence.at).toISOString()}`
    : 'a standby took over';
  return new KmsError(code, `${who}: this appliance no longer serves`, {
    hint:
      'use the one that took over; `kms serve --take-back` serves this one all the same, in a new epoch: do that only ' +
      'when the other is stopped for good, since what was written there is not here',
  });
}

interface OpeningDeps {
  /** Files of the data directory. */
  readonly files: Files;
  /** The directories to which this life ships or has shipped. */
  readonly shipped: readonly Fenced[];
  /** Whether the administrator wants it served all the same. */
  readonly takesBack: boolean;
}

/**
 * Throws `refused` if a standby took over from the appliance being opened; remembers that, and changes nothing else.
 * With `takesBack`, returns the fence to take back from, if any.
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

/** The remembered fence. Only the existence of the mark counts. */
export async function rememberedFence(
  files: Pick<Files, 'exists' | 'read'>,
): Promise<{ readonly from: Fence | undefined } | undefined> {
  if (!(await files.exists(fencedMark))) return undefined;
  const noted = parseJson(await files.read(fencedMark, longestMark));
  return { from: fenceIn(isJsonObject(noted) ? noted : {}) };
}

/** Milliseconds that a directory may delay a start: a network file system can hang for ever. */
const patience = 5000;

/** Undefined also if a directory is out of reach, which shipping reports. */
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
  /** Shipped directories of the appliance that took over, and of all other lives. */
  readonly successors: readonly Fenced[];
  readonly host: string;
}

/**
 * Begins another epoch, whose directory has no fence, and fences the appliance that took over, if it ships to the same
 * place. If cut off, it is repeated.
 */
export async function takeBack({ files, system, tenants, world, from, successors, host }: TakingBack): Promise<void> {
  // Later than the epoch that took over, whatever the clocks say.
  const now = Math.max(world.now(), (from?.epoch ?? 0) + 1);
  const { number } = await system.transaction((tx) => nextEpoch(tx.settings, now));
  const props = { epoch: number, ...(from && { from: from.epoch, host: from.host }) };
  for (const { handle } of tenants.all) {
    await handle.store.transaction((tx) => {
      tx.record(activityRecord(world, { keyid: localCaller.id, action: 'system.take-back', props }));
      expireAnswered({ tx, world });
    });
  }
  const fence = { by: toHex(world.random(16)), host, at: world.now(), epoch: number };
  for (const successor of successors) {
    if ((parseShippedDirectory(successor.directory)?.epoch ?? number) >= number) continue;
    // If it cannot be fenced, it has to be stopped by hand, which the administrator is told.
    if (await successor.files.exists(journalFile).catch(() => false))
      await raiseFence(successor, fence).catch(() => {});
  }
  if (await files.exists(fencedMark)) await files.remove(fencedMark);
  await files.syncDir('.');
}

interface WatchDeps extends Fenced {
  /** Stops serving; retried until it succeeds. */
  onFenced(fence: Fence): Promise<void>;
  readonly onEvent: (event: ApplianceEvent) => void;
}

/** Milliseconds between two checks for the fence; independent of shipping, which may be slow. */
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

  /** Returns whether the fence was found. */
  async #look(): Promise<boolean> {
    try {
      const fence = await readFence(this.#deps);
      if (fence) await this.#deps.onFenced(fence);
      this.#problem = undefined;
      return fence !== undefined;
    } catch (cause) {
      const problem = reasonOf(cause);
      // Reported once, not at each check. Shipping reports a directory out of reach.
      if (problem !== this.#problem && cause instanceof KmsError) {
        this.#deps.onEvent({ level: 'error', message: problem, cause });
      }
      this.#problem = problem;
      return false;
    }
  }
}
