// A shipped directory: one for each epoch of each appliance. It has the files of the stores under their own names,
// except segments of the activity log, which a change of keys rewrites: their names end in the epoch of their key. Its
// journal has a line for each time at which everything up to some commits had arrived. Lines are chained by their MACs,
// so that none can be changed, dropped or moved; the last one may be torn.
//
//   line = {"at":ms,"keyEpoch":n,"seal":digest,"stores":{dir:place|null}} TAB mac (64 hex digits) LF
//   mac  = HMAC-SHA256(backup key of the appliance's own store, text)
//   text = "kms/ship/v1" LF directory's name LF mac of the line before LF JSON
import { setImmediate } from 'node:timers/promises';
import { concatBytes, fromUtf8, toHex, utf8 } from '../crypto/bytes.ts';
import { hmacSha256, runningHmacSha256, sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { isCount, isHex, isJsonObject } from '../model/json.ts';
import { longestSeal, sealFile } from '../platform/data-dir.ts';
import { latestEpoch } from '../platform/epoch.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import type { HeldFile } from '../store/port.ts';
import { logName, snapshotName } from '../store/store-files.ts';
import { isStoreDir, parseJson } from './format.ts';
import { mostLogs } from './shipped-bounds.ts';

/** Log position up to which a store has arrived. */
export interface ShippedPlace {
  /** In hexadecimal. */
  readonly uid: string;
  /** Number of transactions; absent for a store that was not open. */
  readonly sequence?: number;
  /**
   * Generations of the snapshot to recover from and of the last log, and the offset in that log at which the commit
   * ends.
   */
  readonly snapshot: number;
  readonly log: number;
  readonly offset: number;
  /** Number of segments of the activity log. */
  readonly segments: number;
  /** First record of the first segment. Default: 1. */
  readonly from?: number;
}

export interface Point {
  /** Epoch milliseconds: everything in the point was committed by then. */
  readonly at: number;
  /** Epoch of the key of the appliance's own store that authenticates the line. */
  readonly keyEpoch: number;
  /** Changes since the previous line; all stores in the first line. `null`: the store is gone. */
  readonly stores: Readonly<Record<string, ShippedPlace | null>>;
  /** SHA-256 of the seal file that is valid from here on, hexadecimal; absent if it is unchanged. */
  readonly seal?: string;
}

export type PointKeys = Pick<TenantKeys, 'epoch' | 'key'>;

export const journalFile = 'points.kms';
const noMac = '0'.repeat(64);

/** Writes and verifies lines in order. Without keys it only parses them, and nothing proves who wrote them. */
export class PointChain {
  readonly #directory: string;
  readonly #keys: PointKeys | undefined;
  #last = noMac;
  #count = 0;
  /** Stores in the lines read without keys. */
  #stores = 0;

  constructor(directory: string, keys: PointKeys | undefined) {
    this.#directory = directory;
    this.#keys = keys;
  }

  /** Lines so far. */
  get count(): number {
    return this.#count;
  }

  line({ at, keyEpoch, ...rest }: Point): Uint8Array {
    // In this order, so that `read` finds the key in front.
    const json = JSON.stringify({ at, keyEpoch, ...rest });
    if (!this.#keys) throw new KmsError('internal', 'a line of the journal needs its key');
    this.#last = toHex(hmacSha256(this.#keys.key('backup', keyEpoch))(utf8(this.#before() + json)));
    this.#count += 1;
    return utf8(`${json}\t${this.#last}\n`);
  }

  /**
   * The point of a line without its line feed; undefined if it is not the next line. With keys nothing is parsed that
   * does not verify, and a long line yields to the event loop; without keys no line counts of more stores than are
   * parsed quickly.
   */
  async read(line: Uint8Array): Promise<Point | undefined> {
    const end = line.length - noMac.length - 1;
    const json = line.subarray(0, Math.max(0, end));
    const mac = fromUtf8(line.subarray(end + 1));
    if (line[end] !== tab || !isHex(mac, noMac.length)) return undefined;
    if (this.#keys && (await this.#mac(this.#keys, json)) !== mac) return undefined;
    if (!this.#keys) {
      const stores = storesIn(json);
      this.#stores += stores;
      if (stores > mostUnproven.line || this.#stores > mostUnproven.journal) return undefined;
    }
    const point = readPoint(parseJson(json));
    if (!point) return undefined;
    this.#last = mac;
    this.#count += 1;
    return point;
  }

  /** Undefined if the line names no key that is held. */
  async #mac(keys: PointKeys, json: Uint8Array): Promise<string | undefined> {
    const epoch = frontOf(json)?.keyEpoch;
    const key = epoch === undefined ? undefined : keyFor(keys, epoch);
    if (!key) return undefined;
    const before = utf8(this.#before());
    if (json.length <= longPiece) return toHex(hmacSha256(key)(concatBytes(before, json)));
    const running = runningHmacSha256(key);
    running.update(before);
    for (let at = 0; at < json.length; at += longPiece) {
      running.update(json.subarray(at, at + longPiece));
      await setImmediate();
    }
    return toHex(running.digest());
  }

  #before(): string {
    return `kms/ship/v1\n${this.#directory}\n${this.#last}\n`;
  }
}

const tab = 0x09;
/** Stores in a line, and in all lines, that are read without the key: parsing 40,000 takes a tenth of a second. */
export const mostUnproven = { line: 40_000, journal: 700_000 };

/**
 * Stores that a line may have; infinite for a text that no appliance writes: a line has neither blanks nor arrays, and
 * a place has seven members.
 */
function storesIn(json: Uint8Array): number {
  let [count, commas] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] ?? 0;
    if (byte === openBracket || byte <= blank) return Number.POSITIVE_INFINITY;
    if (byte === comma) commas += 1;
    if (byte === openBrace || (byte === letterN && json[at - 1] === colon)) count += 1;
  }
  return commas > 8 * count + 8 ? Number.POSITIVE_INFINITY : count;
}

const [blank, comma, colon, openBracket, letterN, openBrace] = [0x20, 0x2c, 0x3a, 0x5b, 0x6e, 0x7b];
/** Bytes hashed before yielding to the event loop. */
const longPiece = 256 * 1024;

/** The numbers that a line begins with, unverified; undefined if no appliance began it. */
export function frontOf(line: Uint8Array): Pick<Point, 'at' | 'keyEpoch'> | undefined {
  const front = new TextDecoder('latin1').decode(line.subarray(0, 64));
  const [, at, keyEpoch] = /^\{"at":([0-9]{1,16}),"keyEpoch":([0-9]{1,9})[,}]/.exec(front) ?? [];
  return isCount(Number(at)) && isCount(Number(keyEpoch)) ? { at: Number(at), keyEpoch: Number(keyEpoch) } : undefined;
}

/** Undefined for a key that is not held, as of a tampered epoch. */
function keyFor(keys: PointKeys, epoch: number): Uint8Array | undefined {
  try {
    return keys.key('backup', epoch);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

export interface Journal {
  readonly points: readonly Point[];
  /** Bytes of the lines that verify. */
  readonly bytes: number;
  /** The chain after the last of them. */
  readonly chain: PointChain;
}

/** Bytes parsed before yielding to the event loop. */
const readATurn = 128 * 1024;

/**
 * Throws `corrupt` if a line before the last one does not verify. `directory` is the name of the shipped directory;
 * with `chain` the bytes continue from its last line.
 */
export async function readJournal(
  bytes: Uint8Array,
  directory: string,
  keys: PointKeys | undefined,
  chain = new PointChain(directory, keys),
): Promise<Journal> {
  const journal = await beginningOf(bytes, chain);
  if (goesOnBehind(bytes, journal)) throw damagedJournal(directory, journal.chain.count + 1);
  return journal;
}

/** Whether more follows the lines that verify than one that may be torn. */
export function goesOnBehind(bytes: Uint8Array, { bytes: end }: Pick<Journal, 'bytes'>): boolean {
  const torn = bytes.indexOf(0x0a, end);
  return torn >= 0 && bytes.indexOf(0x0a, torn + 1) >= 0;
}

/** The beginning of a journal that verifies, whatever comes after it. */
export async function beginningOf(bytes: Uint8Array, chain: PointChain): Promise<Journal> {
  const points: Point[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf(0x0a, at);
    const point = end < 0 ? undefined : await chain.read(bytes.subarray(at, end));
    if (!point) break;
    points.push(point);
    if (Math.floor(at / readATurn) !== Math.floor((end + 1) / readATurn)) await setImmediate();
    at = end + 1;
  }
  return { points, bytes: at, chain };
}

/** All that had arrived after the last of these points. */
export function arrived(points: Iterable<Point>): Map<string, ShippedPlace> {
  const places = new Map<string, ShippedPlace>();
  for (const { stores } of points) {
    for (const [dir, place] of Object.entries(stores)) {
      if (place) places.set(dir, place);
      else places.delete(dir);
    }
  }
  return places;
}

/** Directories of the stores that these points call gone. */
export function storesGone(points: readonly Point[]): ReadonlySet<string> {
  return new Set(points.flatMap(({ stores }) => Object.keys(stores).filter((dir) => stores[dir] === null)));
}

/** Digest of the seal valid after these points, as in `Point.seal`; undefined if none has one. */
export function sealAfter(points: readonly Point[]): string | undefined {
  return points.findLast(({ seal }) => seal !== undefined)?.seal;
}

export function samePlace(a: ShippedPlace | undefined, b: ShippedPlace | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Undefined for anything but a point, with stores of an appliance only. */
export function readPoint(value: unknown): Point | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.stores)) return undefined;
  const { at, keyEpoch, stores, seal } = value;
  if (!isCount(at) || !isCount(keyEpoch) || keyEpoch < 1) return undefined;
  if (seal !== undefined && !isHex(seal, 64)) return undefined;
  const read = Object.entries(stores).map(([dir, place]) => [dir, place === null ? null : readPlace(place)] as const);
  if (!read.every(([dir, place]) => isStoreDir(dir) && place !== undefined)) return undefined;
  const places = Object.fromEntries(read.map(([dir, place]) => [dir, place ?? null]));
  return { at, keyEpoch, ...(seal === undefined ? {} : { seal }), stores: places };
}

/** File names have ten digits for it. */
const latestGeneration = 9_999_999_999;

function readPlace(value: unknown): ShippedPlace | undefined {
  if (!isJsonObject(value)) return undefined;
  const { uid, sequence, snapshot, log, offset, segments, from } = value;
  if (!isHex(uid, 32) || !isCount(snapshot) || !isCount(log) || !isCount(offset) || !isCount(segments))
    return undefined;
  // Without the key a place is unproven, and no appliance has so many.
  if (Math.max(snapshot, log) > latestGeneration || log - snapshot > mostLogs) return undefined;
  if (sequence !== undefined && !isCount(sequence)) return undefined;
  if (from !== undefined && !isCount(from)) return undefined;
  return {
    uid,
    ...(sequence === undefined ? {} : { sequence }),
    snapshot,
    log,
    offset,
    segments,
    ...(from === undefined ? {} : { from }),
  };
}

function damagedJournal(directory: string, line: number): KmsError {
  const advice =
    line === 1
      ? 'none of it can be used: it is damaged, or a copy under another name than the one that it was shipped to; give ' +
        'it that name again, or restore from a backup'
      : 'the lines before it are good: restore a time before it with --to, or from a backup';
  return new KmsError('corrupt', `${directory}/${journalFile}: line ${line} does not verify`, {
    hint: `nothing was changed; ${advice}`,
  });
}

/**
 * A seal that arrived after the last point: it becomes valid when a point says so, since it may not open older files
 * any more.
 */
export const nextSealFile = `${sealFile}.next`;

const directoryPattern = /^([0-9a-f]{32})-([0-9]{1,15})$/;
const segmentPattern = /^(activity-([0-9]{12})\.kms)\.(0|[1-9][0-9]{0,4})$/;

/** Throws `refused` for a name that `parseShippedDirectory` would not read: no command would find what is there. */
export function shippedDirectory(applianceId: string, epoch: number): string {
  const name = `${applianceId}-${epoch}`;
  if (parseShippedDirectory(name)?.epoch === epoch) return name;
  throw new KmsError('refused', `epoch ${epoch} of ${applianceId}: expected a number up to ${latestEpoch}`, {
    hint: 'nothing was shipped; no clock leads there: restore a backup from before it',
  });
}

export function sealDigest(bytes: Uint8Array): string {
  return toHex(sha256(bytes));
}

/** The seal file that opens everything up to the last of `points`, which must be all points. */
export async function shippedSeal(
  files: Pick<Files, 'exists' | 'read'>,
  points: readonly Point[],
): Promise<Uint8Array> {
  if (await files.exists(nextSealFile)) {
    const next = await files.read(nextSealFile, longestSeal);
    if (sealDigest(next) === sealAfter(points)) return next;
  }
  return files.read(sealFile, longestSeal);
}

export interface ShippedDirectory {
  readonly name: string;
  readonly appliance: string;
  readonly epoch: number;
}

export function parseShippedDirectory(name: string): ShippedDirectory | undefined {
  const [, appliance, epoch] = directoryPattern.exec(name) ?? [];
  // One name for each epoch.
  if (epoch?.startsWith('0')) return undefined;
  return appliance === undefined ? undefined : { name, appliance, epoch: Number(epoch) };
}

/** Milliseconds beyond the clock at which an epoch that no key proves is left out: epochs are times. */
const farAhead = 366 * 24 * 60 * 60 * 1000;

export function isFarAhead(epoch: number, now: number): boolean {
  return epoch > now + farAhead;
}

/** The lives among these names, the highest epoch first. Nothing proves that an appliance made them. */
export function livesNamed(names: readonly string[]): readonly ShippedDirectory[] {
  const lives = names.map(parseShippedDirectory).filter((life) => life !== undefined);
  return lives.sort((a, b) => b.epoch - a.epoch);
}

export function isLog({ name }: HeldFile): boolean {
  return /\/log-[0-9]{10}\.kms$/.test(name);
}

/** The name under which a segment is shipped; its header has the epoch of its key in clear. */
export async function shippedSegment(files: Pick<Files, 'readAt'>, name: string): Promise<string> {
  const [high = 0, low = 0] = await files.readAt(name, 10, 2);
  return `${name}.${high * 256 + low}`;
}

interface ShippedSegment {
  /** The segment's own name. */
  readonly own: string;
  /** Its first record. */
  readonly from: number;
  /** Epoch of its key. */
  readonly epoch: number;
}

export function parseShippedSegment(name: string): ShippedSegment | undefined {
  const [, own = '', from, epoch] = segmentPattern.exec(name) ?? [];
  return from === undefined ? undefined : { own, from: Number(from), epoch: Number(epoch) };
}

/** The first record of a segment by its own name. */
export function firstOfSegment(name: string): number {
  return parseShippedSegment(`${name.slice(name.lastIndexOf('/') + 1)}.1`)?.from ?? 1;
}

/** Snapshot and logs from which the store is recovered up to `place`; of the last log only `bytes` count. */
export function* filesUpTo(
  dir: string,
  { snapshot, log, offset }: ShippedPlace,
): Generator<{ readonly name: string; readonly bytes?: number }> {
  yield { name: snapshotName(dir, snapshot) };
  for (let generation = snapshot + 1; generation < log; generation++) yield { name: logName(dir, generation) };
  if (log > snapshot) yield { name: logName(dir, log), bytes: offset };
}
