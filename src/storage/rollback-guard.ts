// RollbackGuard notes how far every store is, so that a start notices files that were cut or replaced by an older copy.
// The appliance's own store notes the tenants', and a sealed file beside the seal notes all of them. Only durable
// transactions are noted, so that no crash looks like an older copy: a note may be behind a store, never ahead of it.
//
//   file = "KMS-WITN" | version u16 | cipher u16 | key epoch u16 | zero u16 | nonce 24 | ciphertext | tag 16

import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { isCount, isJsonObject, jsonOf } from '../model/json.ts';
import { formatMark, isFork, type Mark } from '../model/store-mark.ts';
import { longestWitness, systemDir, witnessFile } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import { isRuns } from '../store/snapshot-manifest.ts';
import type { NotedMark } from '../store/tables/marks.ts';
import type { Tenants } from './served-tenants.ts';
import type { SystemStore } from './stores.ts';

/** The noted mark of each store, by its name in the seal. */
export type Noted = ReadonlyMap<string, NotedMark>;

const magic = utf8('KMS-WITN');
const version = 1;
/** XChaCha20-Poly1305. */
const cipher = 1;
const headLength = 16;
const nonceLength = 24;
const label = utf8('kms/witness/v1');

function sealWitness(keys: TenantKeys, noted: Noted, random: (length: number) => Uint8Array): Uint8Array {
  const head = new Uint8Array(headLength);
  head.set(magic);
  const view = new DataView(head.buffer);
  view.setUint16(8, version);
  view.setUint16(10, cipher);
  view.setUint16(12, keys.epoch);
  const nonce = random(nonceLength);
  const plain = utf8(JSON.stringify({ stores: Object.fromEntries(noted) }));
  return concatBytes(head, nonce, sealXChaCha(keys.key('witness'), nonce, plain, concatBytes(label, head)));
}

function openWitness(keys: TenantKeys, bytes: Uint8Array): Noted {
  const head = bytes.subarray(0, headLength);
  if (head.length < headLength || !equalBytes(head.subarray(0, 8), magic)) throw damaged('it does not begin like one');
  const view = new DataView(head.buffer, head.byteOffset, headLength);
  if (view.getUint16(8) !== version || view.getUint16(10) !== cipher) {
    throw damaged(`format version ${view.getUint16(8)}, this program reads ${version}`);
  }
  const sealed = bytes.subarray(headLength + nonceLength);
  const nonce = bytes.subarray(headLength, headLength + nonceLength);
  const key = keyOf(keys, view.getUint16(12));
  const plain = sealed.length < 16 ? undefined : openXChaCha(key, nonce, sealed, concatBytes(label, head));
  const text = plain && fromUtf8(plain);
  if (text === undefined) throw damaged('it does not verify');
  const value = jsonOf(text);
  const stores = isJsonObject(value) ? value.stores : undefined;
  if (!isJsonObject(stores)) throw damaged('it holds no notes');
  return new Map(Object.entries(stores).map(([name, mark]) => [name, notedMark(mark, name)]));
}

function notedMark(value: unknown, name: string): NotedMark {
  const { sequence, runs, at } = isJsonObject(value) ? value : {};
  if (!isCount(sequence) || !isRuns(runs) || !Number.isSafeInteger(at)) throw damaged(`it holds no note of ${name}`);
  return { sequence, runs, at: Number(at) };
}

/** Undefined if there is no file: nothing was noted yet, or the file was removed. */
export async function readRollbackNotes(files: Files, keys: TenantKeys): Promise<Noted | undefined> {
  return (await files.exists(witnessFile))
    ? openWitness(keys, await files.read(witnessFile, longestWitness))
    : undefined;
}

/** Writes the first notes in a directory that has none. */
export function writeRollbackNotes(
  files: Files,
  keys: TenantKeys,
  stores: ReadonlyMap<string, { readonly mark: Mark }>,
  at: number,
): Promise<void> {
  const noted = new Map([...stores].map(([name, { mark }]) => [name, noteOf(mark, at)]));
  return files.replace(witnessFile, sealWitness(keys, noted, systemRandom));
}

function keyOf(keys: TenantKeys, epoch: number): Uint8Array {
  try {
    return keys.key('witness', epoch);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') {
      throw damaged(`sealed under key epoch ${epoch}, which is not held`);
    }
    throw error;
  }
}

function damaged(what: string): KmsError {
  return new KmsError('corrupt', `${witnessFile}: ${what}`, {
    hint:
      'nothing was changed; put the file back as it was, or restore from a backup; if it is lost, and the rest is as ' +
      'new as it was, `kms serve --accept-older system` makes a new one',
  });
}

/** Describes why a found store is older than noted; undefined if it is not. `log` is its last log file. */
export function olderThanNoted(
  found: Mark & { readonly log: string },
  noted: readonly NotedMark[],
): string | undefined {
  const last = noted.reduce((a, b) => (b.sequence > a.sequence ? b : a), { sequence: -1, runs: [], at: 0 });
  const at = new Date(last.at).toISOString();
  if (found.sequence < last.sequence) {
    return `${found.log} ends at transaction ${found.sequence}, and at ${at} there were ${last.sequence}`;
  }
  const fork = noted.find((each) => isFork(found, each));
  if (!fork) return undefined;
  const was = `transaction ${fork.sequence} that there was at ${new Date(fork.at).toISOString()}`;
  return `${found.log} holds a different history from the one with the ${was}`;
}

interface RollbackGuardDeps {
  readonly files: Files;
  /** The keys of the appliance's own store. */
  readonly keys: TenantKeys;
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** Whether writes that can wait must wait. */
  readonly mustWait?: () => boolean;
}

/** Milliseconds between two notes while the appliance serves and something changes. */
const usualPause = 2000;

export class RollbackGuard {
  readonly #deps: RollbackGuardDeps;
  /** The furthest known mark of each store, by name: noted before it opened, or reached since. */
  readonly #known: Map<string, NotedMark>;
  /** The tenants' marks as last read from the appliance's own store, for when that does not serve. */
  #rows: Noted;
  /** The marks as last noted, by name. */
  readonly #noted = new Map<string, string>();
  #hasFile: boolean;
  #timer: NodeJS.Timeout | undefined;
  readonly #queue = new SerialQueue();
  #failing = false;
  /** Stores that are behind their known mark, each reported once. */
  readonly #behind = new Set<string>();

  /**
   * `known`: the notes so far, in the appliance's own store and in the file; those of `accepted` older stores no longer
   * count.
   */
  constructor(
    deps: RollbackGuardDeps,
    known: {
      readonly marks: Noted;
      readonly rollbackNotes: Noted | undefined;
      readonly accepted: readonly { readonly dir: string }[];
    },
  ) {
    const { marks, rollbackNotes = new Map(), accepted } = known;
    this.#deps = deps;
    this.#hasFile = known.rollbackNotes !== undefined;
    const isAccepted = (name: string): boolean => accepted.some(({ dir }) => dir === name);
    this.#rows = marks;
    this.#known = new Map([...furthest(marks, rollbackNotes)].filter(([dir]) => !isAccepted(dir)));
    for (const [dir, mark] of rollbackNotes) {
      const text = formatMark(mark);
      const row = marks.get(dir);
      if (dir === systemDir || (row && formatMark(row) === text)) this.#noted.set(dir, text);
    }
  }

  /** The known mark of each store: nothing behind it may be put in service. */
  get known(): Noted {
    return this.#known;
  }

  /** Notes changes regularly until `close`. */
  start(pause = usualPause): void {
    this.#timer = setInterval(() => void this.try(), pause).unref();
  }

  /** Notes what changed. A failure is reported once, and the next note tries again. */
  async try(): Promise<void> {
    if (this.#deps.mustWait?.()) return;
    try {
      await this.note();
      this.#failing = false;
    } catch (cause) {
      if (!this.#failing) {
        const what = 'how far the stores are could not be noted, so an older copy may go unnoticed';
        this.#deps.onEvent?.({ level: 'warn', message: `${what}: ${reasonOf(cause)}`, cause });
      }
      this.#failing = true;
    }
  }

  note(): Promise<void> {
    return this.#queue.run(() => this.#note());
  }

  /** Stops the timer and notes the final state of the stores; those of the tenants may be closed already. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.try();
  }

  async #note(): Promise<void> {
    const { system, tenants, now } = this.#deps;
    const at = now();
    const changed = tenants.all
      .map(({ record: { dir }, handle: { store } }) => ({ dir, mark: this.#learn(dir, store.mark, at) }))
      .filter(({ dir, mark }) => formatMark(mark) !== this.#noted.get(dir));
    if (changed.length === 0 && formatMark(this.#learn(systemDir, system.mark, at)) === this.#noted.get(systemDir)) {
      return;
    }
    // The file first: once there is a row, a missing file means that it was removed.
    if (!this.#hasFile) await this.#write(at);
    try {
      this.#rows = await system.transaction(({ marks }) => {
        const rows = marks.all();
        // Another node may have noted more.
        for (const { dir, mark } of changed) {
          const row = rows.get(dir);
          if (!row || !isBehind(mark, row)) marks.set(dir, noteOf(mark, at));
        }
        return changed.length > 0 ? marks.all() : rows;
      });
    } finally {
      // Written even if the appliance's own store was lost: then only the file informs the next start.
      await this.#write(at);
    }
    for (const { dir, mark } of changed) this.#noted.set(dir, formatMark(mark));
  }

  /** The furthest mark of the store: this one, unless it is behind the known mark or a fork of it. */
  #learn(dir: string, mark: Mark, at: number): Mark {
    const known = this.#known.get(dir);
    if (!known || !isBehind(mark, known)) {
      if (!known || formatMark(known) !== formatMark(mark)) this.#known.set(dir, noteOf(mark, at));
      this.#behind.delete(dir);
      return mark;
    }
    if (!this.#behind.has(dir)) {
      this.#behind.add(dir);
      const what = `${dir}: is at transaction ${mark.sequence}, and this process knows of ${known.sequence}`;
      this.#deps.onEvent?.({ level: 'error', message: `${what}: the larger number stays noted` });
    }
    return known;
  }

  /** Writes the furthest mark of every existing store, from the rows and from this process's knowledge. */
  async #write(at: number): Promise<void> {
    const { files, keys, system, tenants, random } = this.#deps;
    const mark = this.#learn(systemDir, system.mark, at);
    const isThere = new Set([systemDir, ...this.#rows.keys(), ...tenants.all.map(({ record: { dir } }) => dir)]);
    const noted = new Map([...furthest(this.#rows, this.#known)].filter(([dir]) => isThere.has(dir)));
    await files.replace(witnessFile, sealWitness(keys, noted, random));
    this.#hasFile = true;
    this.#noted.set(systemDir, formatMark(mark));
  }
}

/** Whether a store with this mark lacks part of the known history. */
function isBehind(mark: Mark, known: Mark): boolean {
  return mark.sequence < known.sequence || isFork(mark, known);
}

/** The further mark of each store. */
function furthest(a: Noted, b: Noted): Map<string, NotedMark> {
  const all = new Map(a);
  for (const [dir, mark] of b) if ((all.get(dir)?.sequence ?? -1) < mark.sequence) all.set(dir, mark);
  return all;
}

function noteOf({ sequence, runs }: Mark, at: number): NotedMark {
  return { sequence, runs, at };
}
