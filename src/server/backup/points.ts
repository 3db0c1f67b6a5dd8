// The journal of a shipped directory: one line for each time at which everything up to some commits had arrived there. Lines are
// chained by their MACs, so that none can be changed, dropped or moved; the last one may be torn.
//
//   line = {"at":ms,"keyEpoch":n,"seal":digest,"stores":{dir:place|null}} TAB mac (64 hex digits) LF
//   mac  = HMAC-SHA256(backup key of the appliance's own store, "kms/ship/v1" LF directory's name LF mac of the line before LF JSON)
import { toHex, utf8 } from '../../crypto/encoding.ts';
import { hmacSha256 } from '../../crypto/hash.ts';
import { KmsError } from '../../errors.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import { isObject, parseJson } from './json.ts';
import { isStoreDir } from './manifest.ts';

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

/** Makes and checks lines, one after the other. */
export class PointChain {
  readonly #directory: string;
  readonly #keys: PointKeys;
  #last = noMac;

  constructor(directory: string, keys: PointKeys) {
    this.#directory = directory;
    this.#keys = keys;
  }

  line(point: Point): Uint8Array {
    const json = JSON.stringify(point);
    this.#last = this.#mac(json, point.keyEpoch);
    return utf8(`${json}\t${this.#last}\n`);
  }

  /** The point of a line without its line feed; undefined when it is not the next one. */
  read(line: string): Point | undefined {
    const [json = '', mac, ...more] = line.split('\t');
    const point = readPoint(parseJson(utf8(json)));
    if (!point || mac === undefined || more.length > 0 || this.#mac(json, point.keyEpoch) !== mac) return undefined;
    this.#last = mac;
    return point;
  }

  #mac(json: string, keyEpoch: number): string {
    const key = this.#keys.key('backup', keyEpoch);
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

/** Throws `corrupt` where a line before the last one does not verify. `directory` is the name of the shipped directory. */
export function readJournal(bytes: Uint8Array, directory: string, keys: PointKeys): Journal {
  const chain = new PointChain(directory, keys);
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
  if (!isObject(value) || !isObject(value.stores)) return undefined;
  const { at, keyEpoch, stores, seal } = value;
  if (!isCount(at) || !isCount(keyEpoch) || keyEpoch < 1) return undefined;
  if (seal !== undefined && !(typeof seal === 'string' && /^[0-9a-f]{64}$/.test(seal))) return undefined;
  const read = Object.entries(stores).map(([dir, place]) => [dir, place === null ? null : readPlace(place)] as const);
  if (!read.every(([dir, place]) => isStoreDir(dir) && place !== undefined)) return undefined;
  const places = Object.fromEntries(read.map(([dir, place]) => [dir, place ?? null]));
  return { at, keyEpoch, ...(seal === undefined ? {} : { seal }), stores: places };
}

function readPlace(value: unknown): ShippedPlace | undefined {
  if (!isObject(value)) return undefined;
  const { uid, sequence, snapshot, log, offset, segments } = value;
  if (typeof uid !== 'string' || !/^[0-9a-f]{32}$/.test(uid)) return undefined;
  if (!isCount(snapshot) || !isCount(log) || !isCount(offset) || !isCount(segments)) return undefined;
  if (sequence === undefined) return { uid, snapshot, log, offset, segments };
  return isCount(sequence) ? { uid, sequence, snapshot, log, offset, segments } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function damagedJournal(directory: string, line: number): KmsError {
  return new KmsError('corrupt', `${directory}/${journalFile}: line ${line} does not verify`, {
    hint: 'nothing was changed; the lines before it are good: restore a time before it with --to, or from a backup',
  });
}
