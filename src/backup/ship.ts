// Ships the appliance to a second directory every few seconds: the latest writes, and from time to time a snapshot, so
// that a lost disk costs no more than the interval. The serving thread reads and copies in small pieces, and no request
// waits.

import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { concatBytes, equalBytes } from '../crypto/bytes.ts';
import { KmsError, systemError } from '../errors.ts';
import { sealName, systemDir } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { tryFileSystem } from '../platform/file-system.ts';
import { type ForeignFiles, foreignFiles } from '../platform/foreign-files.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import { logName } from '../store/store-files.ts';
import type { Fenced } from './fence.ts';
import { isSegment } from './format.ts';
import { isProvenLife, laterLives, UnprovenLives } from './lives.ts';
import {
  firstOfSegment,
  isLog,
  livesNamed,
  type Point,
  type ShippedPlace,
  samePlace,
  sealDigest,
  shippedDirectory,
} from './ship-journal.ts';
import { ShipTarget } from './ship-target.ts';
import { mostLives, mostNames } from './shipped-bounds.ts';
import { type Collected, type Collecting, collect, isLost, stillOpens } from './write.ts';

interface ShipDeps extends Collecting {
  readonly seal: { readonly current: Seal };
  /** Files of the directory for one epoch of the appliance. */
  target(directory: string): Files;
  /** The epoch of the appliance's current life. */
  readonly epoch: number;
  /** In epoch milliseconds. */
  now(): number;
  /** Milliseconds for which earlier states stay restorable. */
  readonly window: number;
}

/** Bytes of a log compared before it is continued: a record's seal, which depends on all before it. */
const comparedTail = 64;
/**
 * Points that may exceed the window before the journal is rewritten; a quarter of them, if that is more: a standby
 * without the key keeps each journal that was.
 */
const pruneEvery = 256;

export class Shipper {
  readonly #deps: ShipDeps;
  #target: ShipTarget | undefined;
  #seal: Seal | undefined;
  #signature: string | undefined;
  #pruned = 0;
  #snapshots = '';

  constructor(deps: ShipDeps) {
    this.#deps = deps;
  }

  /**
   * Ships everything that is durable now. Returns whether there was anything. After a failure, the next call does what
   * is left.
   */
  async ship(): Promise<boolean> {
    const signature = this.#signatureNow();
    if (signature === this.#signature && this.#seal === this.#deps.seal.current) return false;
    const collected = await collect(this.#deps, { counted: false });
    try {
      // From here on no held file gets another key.
      const seal = this.#deps.seal.current;
      const at = this.#deps.now();
      const target = this.#target ?? (await this.#open(collected, seal));
      this.#target = target;
      await this.#bring(target, collected, seal, at);
    } catch (error) {
      // The target's contents are read again next time.
      this.#target = undefined;
      this.#seal = undefined;
      this.#signature = undefined;
      throw error;
    } finally {
      collected.release();
    }
    this.#signature = signature;
    return true;
  }

  async #bring(target: ShipTarget, { stores }: Collected, seal: Seal, at: number): Promise<void> {
    const { files } = this.#deps;
    for (const { dir, files: held, hold } of stores) {
      await target.makeDir(dir);
      const keys = JSON.stringify(seal.epochsOf(sealName(dir)));
      for (const file of held) {
        try {
          await target.bring(files, file, keys, hold !== undefined);
        } catch (error) {
          // A lost segment may have been shipped before. Any other file must arrive.
          if (!(await isLost(files, file))) throw error;
        }
      }
    }
    // A key removed meanwhile may be that of a file just copied: then this point is dropped, and the next one counts.
    if (!stillOpens(this.#deps.seal.current, seal)) return;
    const newSeal = this.#seal === seal ? undefined : seal.toBytes();
    if (newSeal) await target.bringSeal(newSeal);
    const places = new Map(stores.map((store) => [store.dir, placeOf(store)]));
    const changed = changes(target, places);
    const { epoch: keyEpoch } = seal.keysFor(systemDir);
    if (newSeal || Object.keys(changed).length > 0) {
      await target.note({ at, keyEpoch, ...(newSeal && { seal: sealDigest(newSeal) }), stores: changed });
    }
    if (newSeal) await target.adoptSeal(newSeal);
    this.#seal = seal;
    await this.#prune(target, places, at, seal);
  }

  /** Checks that the target's contents are the beginning of the local ones. */
  async #open({ stores }: Collected, seal: Seal): Promise<ShipTarget> {
    const { files, epoch } = this.#deps;
    const directory = shippedDirectory(seal.applianceId, epoch);
    const keys = seal.keysFor(systemDir);
    const target = new ShipTarget(this.#deps.target(directory), directory, keys);
    await target.open(keys);
    for (const store of stores) {
      const there = target.places.get(store.dir);
      if (!there) continue;
      const here = placeOf(store);
      if (there.uid !== here.uid || isBehind(here, there)) throw older(directory);
      const held = store.files.find(({ name }) => name === logName(store.dir, there.log));
      if (!held) continue;
      const length = Math.min(comparedTail, there.offset);
      const own = await files.readAt(held.name, there.offset - length, length);
      if (!equalBytes(concatBytes(own), await target.tailOf(store.dir, there, length))) throw older(directory);
    }
    return target;
  }

  async #prune(target: ShipTarget, places: ReadonlyMap<string, ShippedPlace>, at: number, seal: Seal): Promise<void> {
    const snapshots = [...places].map(([dir, { snapshot }]) => `${dir} ${snapshot}`).join();
    if (snapshots === this.#snapshots && ++this.#pruned < Math.max(pruneEvery, target.points.length / 4)) return;
    await target.prune(at - this.#deps.window, seal.keysFor(systemDir));
    this.#snapshots = snapshots;
    this.#pruned = 0;
  }

  /** A summary that changes whenever there may be something to ship; needs no hold on the files. */
  #signatureNow(): string {
    const { system, tenants } = this.#deps;
    return [system, ...tenants.all.map(({ handle }) => handle.store)]
      .map((store) => {
        // If two checkpoints fall in one millisecond, dropped segments still change `activityBytes`.
        const { sequence, logBytes, lastCheckpointAt, activityBytes } = store.status();
        return `${sequence}/${logBytes}/${lastCheckpointAt}/${activityBytes}`;
      })
      .join();
  }
}

function placeOf({ uid, sequence, files, hold }: Collected['stores'][number]): ShippedPlace {
  const logs = files.filter(isLog);
  const segments = files.filter(isSegment);
  const from = firstOfSegment(segments[0]?.name ?? '');
  const last = logs.at(-1);
  const snapshot = hold?.snapshot ?? generationOf(files[0]?.name ?? '');
  return {
    uid,
    ...(sequence === undefined ? {} : { sequence }),
    snapshot,
    log: hold?.log.generation ?? (last ? generationOf(last.name) : snapshot),
    offset: last?.bytes ?? 0,
    segments: segments.length,
    ...(from > 1 ? { from } : {}),
  };
}

function generationOf(name: string): number {
  return Number(/-([0-9]{10})\.kms$/.exec(name)?.[1] ?? 0);
}

function changes(target: ShipTarget, places: ReadonlyMap<string, ShippedPlace>): Point['stores'] {
  const changed: Record<string, ShippedPlace | null> = {};
  for (const [dir, place] of places) if (!samePlace(target.places.get(dir), place)) changed[dir] = place;
  for (const dir of target.places.keys()) if (!places.has(dir)) changed[dir] = null;
  return changed;
}

/** Whether `here` is behind `there` in the same store. */
export function isBehind(here: ShippedPlace, there: ShippedPlace): boolean {
  if (here.sequence !== undefined && there.sequence !== undefined && here.sequence < there.sequence) return true;
  return here.log < there.log || (here.log === there.log && here.offset < there.offset);
}

function older(directory: string): KmsError {
  return new KmsError('refused', `the data directory is older than what was shipped from it to ${directory}`, {
    hint: 'it was put back from a copy: restore it with `kms restore` from what was shipped, or move that away; it is left as it is',
  });
}

export interface ShippingSettings {
  readonly to: string;
  /** In milliseconds. */
  readonly every: number;
  /** Milliseconds for which earlier states stay restorable. */
  readonly window: number;
}

/** The shipped directory of one life of the appliance. */
export function shippedTo(to: ForeignFiles, seal: Seal, epoch: number): Fenced {
  const directory = shippedDirectory(seal.applianceId, epoch);
  return { files: to.beneath(directory), directory, keys: seal.keysFor(systemDir) };
}

/** The shipped directories of all its lives whose journal verifies with these keys: a name proves nothing. */
export async function livesShippedTo(to: ForeignFiles, seal: Seal): Promise<readonly Fenced[]> {
  const found = livesNamed(await to.names('.').catch(() => [])).filter(
    ({ appliance }) => appliance === seal.applianceId,
  );
  const proven: Fenced[] = [];
  for (const { epoch } of found.slice(0, mostLives)) {
    const life = shippedTo(to, seal, epoch);
    if (await isProvenLife(life.files, life.directory, { own: life.keys })) proven.push(life);
  }
  return proven;
}

/** Milliseconds to ship the rest at the end. */
const closeTimeout = 15_000;

export interface ShippingStatus {
  readonly to: string;
  /** Epoch milliseconds: everything durable by then has arrived. */
  readonly arrivedAt: number | undefined;
  /** Why the last try failed, or a problem although everything arrived. */
  readonly error?: string;
  /** Epoch of a later life that ships there too, which is then the problem. */
  readonly laterEpoch?: number;
}

interface ShippingDeps extends Omit<ShipDeps, 'target' | 'window'> {
  /** The data directory. */
  readonly root: string;
}

export class Shipping {
  readonly #settings: ShippingSettings;
  readonly #to: ForeignFiles;
  readonly #deps: ShippingDeps;
  readonly #onEvent: (event: ApplianceEvent) => void;
  readonly #shipper: Shipper;
  readonly #unproven = new UnprovenLives();
  #arrivedAt: number | undefined;
  #error: string | undefined;
  #laterEpoch: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;
  #finished = false;

  constructor(deps: ShippingDeps, settings: ShippingSettings, onEvent: (event: ApplianceEvent) => void) {
    this.#settings = { ...settings, to: resolve(settings.to) };
    this.#to = foreignFiles({ path: settings.to, own: [deps.root] });
    this.#deps = deps;
    this.#onEvent = onEvent;
    const target = (directory: string) => this.#to.beneath(directory);
    this.#shipper = new Shipper({ ...deps, target, window: settings.window });
  }

  get status(): ShippingStatus {
    const { to } = this.#settings;
    return {
      to,
      arrivedAt: this.#arrivedAt,
      ...(this.#error !== undefined && { error: this.#error }),
      ...(this.#laterEpoch !== undefined && { laterEpoch: this.#laterEpoch }),
    };
  }

  /** Ships for the first time at once, in the background. */
  start(): void {
    this.#running = this.#once().then(() => this.#next());
  }

  /** The directory of this life of the appliance. */
  get fenced(): Fenced {
    const { seal, epoch } = this.#deps;
    return shippedTo(this.#to, seal.current, epoch);
  }

  /** Ships all that is left, and nothing after it. Throws if it cannot arrive. */
  async finish(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closed = true;
    await this.#running;
    for (let more = true; more; ) more = await this.#shipper.ship();
    this.#finished = true;
  }

  /** Ships what is left, then stops, without waiting long for a directory that hangs. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#finished) return;
    const last = this.#running.then(() => this.#once());
    const over = new AbortController();
    await Promise.race([last, setTimeout(closeTimeout, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
  }

  #next(): void {
    if (this.#closed) return;
    this.#timer = globalThis.setTimeout(() => this.start(), this.#settings.every).unref();
  }

  async #once(): Promise<void> {
    const at = this.#deps.now();
    try {
      await this.#to.makeDir('.');
      if (this.#arrivedAt === undefined) {
        await tryFileSystem(this.#settings.to, { isPrivate: false, files: this.#to });
      }
      await this.#shipper.ship();
      this.#arrivedAt = at;
      const problem = await this.#problemThere();
      if (problem !== undefined && problem !== this.#error) this.#onEvent({ level: 'warn', message: problem });
      if (problem === undefined && this.#error !== undefined)
        this.#onEvent({ level: 'info', message: 'shipping works again' });
      this.#error = problem;
    } catch (cause) {
      const error = systemError(cause, this.#settings.to);
      const message = error instanceof Error ? error.message : String(error);
      this.#laterEpoch = undefined;
      // Reported once, not at each try.
      if (message !== this.#error) {
        this.#onEvent({ level: 'error', message: `shipping to ${this.#settings.to} failed: ${message}`, cause });
      }
      this.#error = message;
    }
  }

  /**
   * A problem although everything arrived: two lives of one appliance diverge, and only a person knows which is to go
   * on; or others made directories there.
   */
  async #problemThere(): Promise<string | undefined> {
    const { to } = this.#settings;
    const { seal, epoch } = this.#deps;
    const { applianceId } = seal.current;
    const names = await this.#to.names('.');
    const own = shippedDirectory(applianceId, epoch);
    if (!names.includes(own)) {
      throw new KmsError('unavailable', `${own} does not show there, although it was just written`);
    }
    if (names.length > mostNames) {
      return `${to} has ${names.length} entries, too many to look for other lives: find out who made them, and move them away`;
    }
    const life = { appliance: applianceId, epoch };
    const keys = seal.current.keysFor(systemDir);
    const { found, count } = await laterLives((name) => this.#to.beneath(name), names, life, keys, this.#unproven);
    this.#laterEpoch = found?.isProven ? found.directory.epoch : undefined;
    if (found?.isProven) {
      return (
        `a later life of this appliance (epoch ${found.directory.epoch}) ships to the same directory: it was restored ` +
        'from a copy; stop the one that should not go on; if that is the later one, move ' +
        `${join(to, found.directory.name)} away`
      );
    }
    if (count > mostLives) {
      return (
        `${count} directories there are named like later lives of this appliance, and only ${mostLives} of them are ` +
        'looked at: find out who made them, and move them away'
      );
    }
    return (
      found &&
      `${join(to, found.directory.name)} is named like a later life of this appliance, and its journal does not verify ` +
        'with the keys here: find out who made it; where the appliance was restored elsewhere and its keys were ' +
        'changed, stop one of the two'
    );
  }
}
