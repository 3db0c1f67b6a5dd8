// A shipped directory: one for each epoch of each appliance. In it are the files of the stores under their own names,
// but for segments of the activity log, which a change of keys rewrites: those have the epoch of their key behind. Its
// journal has a line for each time at which everything up to some commits had arrived. Lines are chained by their MACs,
// so that none can be changed, dropped or moved; the last one may be torn.
//
//   line = {"at":ms,"keyEpoch":n,"seal":digest,"stores":{dir:place|null}} TAB mac (64 hex digits) LF
//   mac  = HMAC-SHA256(backup key of the appliance's own store, text)
//   text = "kms/ship/v1" LF directory's name LF mac of the line before LF JSON
import { setImmediate } from 'node:timers/promises';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { hmacSha256, sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { sealFile } from '../platform/data-dir.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Files } from '../store/files.ts';
import type { HeldFile } from '../store/port.ts';
import { logName, snapshotName } from '../store/store-files.ts';
import { isCount, isHex, isStoreDir, parseJson } from './format.ts';
import { longestSeal, mostLogs } from './shipped-bounds.ts';

/** How much of a store has arrived. */
export interface ShippedPlace {
  /** Hexadecimal. */
  readonly uid: string;
  /** Transactions; absent for a store that was not open. */
  readonly sequence?: number;
  /** Generation of the snapshot from which a recovery starts, of the last log, and where in that the commit ends. */
  readonly snapshot: number;
  readonly log: number;
  readonly offset: number;
  /** How many segments of the activity log there are. */
  readonly segments: number;
  /** The first record of the first of them; 1 when absent. */
  readonly from?: number;
}

export interface Point {
  /** Epoch milliseconds: everything in it was committed by then. */
  readonly at: number;
  /** Which key of the appliance's own store the line is authenticated with. */
  readonly keyEpoch: number;
  /** What changed since the line before; of the first line everything. `null` = is there no more. */
  readonly stores: Readonly<Record<string, ShippedPlace | null>>;
  /** SHA-256 of the seal file that counts from here on, hexadecimal; absent where that is the one of before. */
  readonly seal?: string;
}

export type PointKeys = Pick<TenantKeys, 'epoch' | 'key'>;

export const journalFile = 'points.kms';
const noMac = '0'.repeat(64);

/** Makes and checks lines, one after the other. Without keys it reads them, and nothing proves who made them. */
export class PointChain {
  readonly #directory: string;
  readonly #keys: PointKeys | undefined;
  #last = noMac;

  constructor(directory: string, keys: PointKeys | undefined) {
    this.#directory = directory;
    this.#keys = keys;
  }

  line(point: Point): Uint8Array {
    const json = JSON.stringify(point);
    if (!this.#keys) throw new KmsError('internal', 'a line of the journal needs its key');
    this.#last = this.#mac(this.#keys, json, point.keyEpoch);
    return utf8(`${json}\t${this.#last}\n`);
  }

  /** The point of a line without its line feed; undefined when it is not the next one. */
  read(line: string): Point | undefined {
    const [json = '', mac, ...more] = line.split('\t');
    const point = readPoint(parseJson(utf8(json)));
    if (!point || mac === undefined || more.length > 0) return undefined;
    try {
      if (this.#keys ? this.#mac(this.#keys, json, point.keyEpoch) !== mac : !isHex(mac, 64)) return undefined;
    } catch (error) {
      // A changed epoch is one that nobody has a key of.
      if (error instanceof KmsError && error.code === 'not-found') return undefined;
      throw error;
    }
    this.#last = mac;
    return point;
  }

  #mac(keys: PointKeys, json: string, keyEpoch: number): string {
    const key = keys.key('backup', keyEpoch);
    return toHex(hmacSha256(key)(utf8(`kms/ship/v1\n${this.#directory}\n${this.#last}\n${json}`)));
  }
}

export interface Journal {
  readonly points: readonly Point[];
  /** Bytes of the lines that verify. */
  readonly bytes: number;
  /** Goes on behind the last of them. */
  readonly chain: PointChain;
}

/** Bytes that are read before others have their turn. */
const readATurn = 128 * 1024;

/**
 * Throws `corrupt` where a line before the last one does not verify. `directory` is the name of the shipped directory;
 * with `chain` the bytes go on behind what that has read.
 */
export async function readJournal(
  bytes: Uint8Array,
  directory: string,
  keys: PointKeys | undefined,
  chain = new PointChain(directory, keys),
): Promise<Journal> {
  const points: Point[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf(0x0a, at);
    const point = end < 0 ? undefined : chain.read(new TextDecoder().decode(bytes.subarray(at, end)));
    if (!point) {
      if (end >= 0 && bytes.indexOf(0x0a, end + 1) >= 0) throw damagedJournal(directory, points.length + 1);
      break;
    }
    points.push(point);
    if (Math.floor(at / readATurn) !== Math.floor((end + 1) / readATurn)) await setImmediate();
    at = end + 1;
  }
  return { points, bytes: at, chain };
}

/** What had arrived in all after the last of these points. */
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

/** Which seal counts after these points, as `Point.seal`; undefined where none says so. */
export function sealAfter(points: readonly Point[]): string | undefined {
  return points.findLast(({ seal }) => seal !== undefined)?.seal;
}

export function samePlace(a: ShippedPlace | undefined, b: ShippedPlace | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function readPoint(value: unknown): Point | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.stores)) return undefined;
  const { at, keyEpoch, stores, seal } = value;
  if (!isCount(at) || !isCount(keyEpoch) || keyEpoch < 1) return undefined;
  if (seal !== undefined && !isHex(seal, 64)) return undefined;
  const read = Object.entries(stores).map(([dir, place]) => [dir, place === null ? null : readPlace(place)] as const);
  if (!read.every(([dir, place]) => isStoreDir(dir) && place !== undefined)) return undefined;
  const places = Object.fromEntries(read.map(([dir, place]) => [dir, place ?? null]));
  return { at, keyEpoch, ...(seal === undefined ? {} : { seal }), stores: places };
}

/** Names of files have ten digits for it. */
const latestGeneration = 9_999_999_999;

function readPlace(value: unknown): ShippedPlace | undefined {
  if (!isJsonObject(value)) return undefined;
  const { uid, sequence, snapshot, log, offset, segments, from } = value;
  if (!isHex(uid, 32) || !isCount(snapshot) || !isCount(log) || !isCount(offset) || !isCount(segments))
    return undefined;
  // Without its key nobody proves them, and no appliance has as many.
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
  return new KmsError('corrupt', `${directory}/${journalFile}: line ${line} does not verify`, {
    hint: 'nothing was changed; the lines before it are good: restore a time before it with --to, or from a backup',
  });
}

/**
 * A seal that came after the last point: it counts when a point says so, since with it older files may not open any
 * more.
 */
export const nextSealFile = `${sealFile}.next`;

const directoryPattern = /^([0-9a-f]{32})-([0-9]{1,15})$/;
const segmentPattern = /^(activity-([0-9]{12})\.kms)\.([0-9]{1,5})$/;

export function shippedDirectory(applianceId: string, epoch: number): string {
  return `${applianceId}-${epoch}`;
}

export function sealDigest(bytes: Uint8Array): string {
  return toHex(sha256(bytes));
}

/** The seal file that opens what arrived up to the last of `points`, which are all that there are. */
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
  return appliance === undefined ? undefined : { name, appliance, epoch: Number(epoch) };
}

export function isLog({ name }: HeldFile): boolean {
  return /\/log-[0-9]{10}\.kms$/.test(name);
}

/** The name under which a segment is shipped; its header says in clear under which key it is. */
export async function shippedSegment(files: Pick<Files, 'readAt'>, name: string): Promise<string> {
  const [high = 0, low = 0] = await files.readAt(name, 10, 2);
  return `${name}.${high * 256 + low}`;
}

interface ShippedSegment {
  /** The segment's own name. */
  readonly own: string;
  /** Its first record. */
  readonly from: number;
  /** Of its key. */
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

/** Snapshot and logs from which the store is recovered to `place`; of the last log only a part may count. */
export function* filesUpTo(
  dir: string,
  { snapshot, log, offset }: ShippedPlace,
): Generator<{ readonly name: string; readonly bytes?: number }> {
  yield { name: snapshotName(dir, snapshot) };
  for (let generation = snapshot + 1; generation < log; generation++) yield { name: logName(dir, generation) };
  if (log > snapshot) yield { name: logName(dir, log), bytes: offset };
}
