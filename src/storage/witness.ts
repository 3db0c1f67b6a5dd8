// Witness notes how far every store is, so that a start tells files that were put back from an older copy, or cut: the
// appliance's own store notes the tenants', and a sealed file beside the seal notes all of them. Only what is durable
// is noted, so that no crash looks like an older copy: a note may be behind a store, never ahead of it.
//
//   file = "KMS-WITN" | version u16 | cipher u16 | key epoch u16 | zero u16 | nonce 24 | ciphertext | tag 16

import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { formatMark, isFork, type Mark } from '../model/store-mark.ts';
import { systemDir, witnessFile } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { NotedMark } from '../store/tables/marks.ts';
import type { Tenants } from './served-tenants.ts';
import type { SystemStore } from './stores.ts';

/** What was noted of each store, by the name that the seal has for it. */
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
  if (head.length < headLength || !equalBytes(head.subarray(0, 8), magic))
    throw damaged('it does not begin as one does');
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
  // Cast: it was sealed by `sealWitness`.
  const { stores } = JSON.parse(text) as { readonly stores: Readonly<Record<string, NotedMark>> };
  return new Map(Object.entries(stores));
}

/** Undefined where there is no file: nothing was noted yet, or somebody took it away. */
export async function readWitness(files: Files, keys: TenantKeys): Promise<Noted | undefined> {
  return (await files.exists(witnessFile)) ? openWitness(keys, await files.read(witnessFile)) : undefined;
}

/** Notes how far stores are of which nothing was noted in this directory yet. */
export function writeWitness(
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
      'nothing was changed; put the file back as it was, or restore from a backup; where it is lost, and the rest is as ' +
      'new as it was, `kms serve --accept-older system` makes it anew',
  });
}

/**
 * What is wrong with a store that is found so, in words; undefined where it is as new as it was. `log` is its last log
 * file.
 */
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
  return `${found.log} holds another history than the one with the ${was}`;
}

interface WitnessDeps {
  readonly files: Files;
  /** Of the appliance's own store. */
  readonly keys: TenantKeys;
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** Whether nothing that can wait may be written. */
  readonly mustWait?: () => boolean;
}

/** Milliseconds between two notes while the appliance serves, where something changed. */
const usualPause = 2000;

export class Witness {
  readonly #deps: WitnessDeps;
  /** The furthest that is known of each store, by name: what was noted before it opened, and what it had since. */
  readonly #known: Map<string, NotedMark>;
  /** As they last stood in the tenants' rows, for when the appliance's own store does not serve. */
  #rows: Noted;
  /** As last noted, by name. */
  readonly #noted = new Map<string, string>();
  #hasFile: boolean;
  #timer: NodeJS.Timeout | undefined;
  readonly #queue = new SerialQueue();
  #failing = false;
  /** Stores that are behind what is known of them, which is said once of each. */
  readonly #behind = new Set<string>();

  /**
   * `known`: what is noted so far, in the appliance's own store and in the file; of stores that are `accepted` older
   * it counts no more.
   */
  constructor(
    deps: WitnessDeps,
    known: {
      readonly marks: Noted;
      readonly witness: Noted | undefined;
      readonly accepted: readonly { readonly dir: string }[];
    },
  ) {
    const { marks, witness = new Map(), accepted } = known;
    this.#deps = deps;
    this.#hasFile = known.witness !== undefined;
    const isAccepted = (name: string): boolean => accepted.some(({ dir }) => dir === name);
    this.#rows = marks;
    this.#known = new Map([...furthest(marks, witness)].filter(([dir]) => !isAccepted(dir)));
    for (const [dir, mark] of witness) {
      const text = formatMark(mark);
      const row = marks.get(dir);
      if (dir === systemDir || (row && formatMark(row) === text)) this.#noted.set(dir, text);
    }
  }

  /** What this process knows of each store: nothing behind it may be taken into service. */
  get known(): Noted {
    return this.#known;
  }

  /** Notes now and then what changed, until `close`. */
  start(pause = usualPause): void {
    this.#timer = setInterval(() => void this.try(), pause).unref();
  }

  /** Notes what changed. What fails is said once and tried again with the next note. */
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

  /** Ends the timer, and notes what the stores came to; those of the tenants may be closed already. */
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
    // The file first: from the first row on, that there is none means that somebody took it away.
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
      // Even where the appliance's own store was lost: then the file alone tells the next start.
      await this.#write(at);
    }
    for (const { dir, mark } of changed) this.#noted.set(dir, formatMark(mark));
  }

  /** The furthest mark of the store, which is this one unless it is behind what is known, or a fork of it. */
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

  /** The furthest of every store that there is, by what the rows and this process know. */
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

/** Whether a store with this mark lacks something of what is known of it. */
function isBehind(mark: Mark, known: Mark): boolean {
  return mark.sequence < known.sequence || isFork(mark, known);
}

/** Of each store what goes further. */
function furthest(a: Noted, b: Noted): Map<string, NotedMark> {
  const all = new Map(a);
  for (const [dir, mark] of b) if ((all.get(dir)?.sequence ?? -1) < mark.sequence) all.set(dir, mark);
  return all;
}

function noteOf({ sequence, runs }: Mark, at: number): NotedMark {
  return { sequence, runs, at };
}
