// Columns are how version 3 of a segment stores its records: field by field in place of line by line. Of an ordinary
// record nothing is left to compress but the 10 random bytes of its id. A line that is not put together again to the
// byte is stored as it is.
import { concatBytes, equalBytes, fromUtf8, utf8 } from '../../crypto/bytes.ts';
import { idFromBytes, idToBytes } from '../../crypto/ulid.ts';
import type { ActivityRecord } from '../port.ts';
import { hashLength } from './chain.ts';
import { compressPart, inflatePart } from './compression.ts';
import { decodeOrigins, OriginCollector, type Origins } from './origins.ts';
import { addressMember } from './record.ts';
import type { SegmentBlock } from './segment.ts';

const prefix = 'act';
/** Bytes of an id before its random ones, which are its time. */
const timeBytes = 6;
const randomBytes = 10;
const idBytes = timeBytes + randomBytes;
/** Differences of later ones may not be exact. */
const latestTime = 2 ** 50;
/** Stands for no frame: the line is stored as it is. */
const wholeLine = 255;

/** The texts of a segment's records by field. */
export interface SegmentTexts {
  readonly addresses: Origins;
  /** As JSON has them. */
  readonly keyids: Origins;
  readonly rings: Origins;
}

/** Gathers them, in the order of the records' positions. */
export class TextCollector {
  readonly #addresses: OriginCollector;
  readonly #keyids: OriginCollector;
  readonly #rings: OriginCollector;

  constructor(records: number) {
    this.#addresses = new OriginCollector(records);
    this.#keyids = new OriginCollector(records);
    this.#rings = new OriginCollector(records);
  }

  get addresses(): Iterable<string> {
    return this.#addresses.texts;
  }

  /** Answers whether the record can do without its texts. */
  add({ address, keyid, ringname }: ActivityRecord): boolean {
    const [from, by, about] = [this.#addresses.add(address), this.#keyids.add(keyid), this.#rings.add(ringname)];
    return (from || address === undefined) && by && about;
  }

  /** Each field's with its length (u32) in front. */
  bytes(): Uint8Array {
    return concatBytes(...[this.#addresses, this.#keyids, this.#rings].flatMap((each) => prefixed(each.bytes())));
  }
}

function prefixed(bytes: Uint8Array): [Uint8Array, Uint8Array] {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return [length, bytes];
}

/** Undefined for bytes that are none. */
export function decodeTexts(bytes: Uint8Array, records: number): SegmentTexts | undefined {
  const reader = new Reader(bytes);
  const next = (): Origins | undefined => {
    const part = reader.take(reader.u32());
    return part.length === 0 ? { addresses: [], numbers: new Uint16Array(records) } : decodeOrigins(part, records);
  };
  const [addresses, keyids, rings] = [next(), next(), next()];
  if (!addresses || !keyids || !rings || !reader.isAtEnd) return undefined;
  return { addresses, keyids: asJson(keyids), rings: asJson(rings) };
}

function asJson({ addresses, numbers }: Origins): Origins {
  return { addresses: addresses.map((text) => JSON.stringify(text)), numbers };
}

/** What of a line is in no column: before and behind its fields, and what stands between keyid and ringname. */
interface Frame {
  readonly front: string;
  readonly inside: string;
  readonly back: string;
}

/** `keyid` and `ringname` are JSON. */
function head(address: string | undefined, createdAt: number, id: string, keyid: string): string {
  const from = address === undefined ? '' : addressMember(address);
  return `${from}"createdAt":${createdAt},"id":"${id}","keyid":${keyid},`;
}

function tail(ringname: string, seq: number): string {
  return `"ringname":${ringname},"seq":${seq},`;
}

/** Undefined for a line that its fields and a frame do not make. */
function frameOf(line: string, { address, createdAt, id, keyid, ringname, seq }: ActivityRecord): Frame | undefined {
  const start = head(address, createdAt, id, JSON.stringify(keyid));
  const end = tail(JSON.stringify(ringname), seq);
  const from = line.indexOf(start);
  const to = line.lastIndexOf(end);
  if (from < 0 || to < from + start.length) return undefined;
  return {
    front: line.slice(0, from),
    inside: line.slice(from + start.length, to),
    back: line.slice(to + end.length),
  };
}

/** Of zigzag numbers, 7 bits a byte with the lowest first. */
class Writer {
  readonly #bytes: number[] = [];

  add(value: number): void {
    let rest = value < 0 ? -value * 2 - 1 : value * 2;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) | 128);
    this.#bytes.push(rest);
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Uint8Array {
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  rest(): Uint8Array {
    return this.take(this.#bytes.length - this.#at);
  }

  u32(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.take(4);
    return a * 0x1_00_00_00 + (b << 16) + (c << 8) + d;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      scale *= 128;
    }
  }
}

/** Milliseconds in front of an id's random bytes. */
function timeOf(id: Uint8Array): number {
  const view = new DataView(id.buffer, id.byteOffset, timeBytes);
  return view.getUint16(0) * 0x1_0000_0000 + view.getUint32(2);
}

/** How far an id is behind the one before in the same millisecond: ids that are made together count up. */
function stepFrom(before: Uint8Array | undefined, id: Uint8Array): number {
  if (!before || !equalBytes(before.subarray(0, 12), id.subarray(0, 12))) return 0;
  const low = (bytes: Uint8Array): number => new DataView(bytes.buffer, bytes.byteOffset).getUint32(12);
  return Math.max(0, low(id) - low(before));
}

/**
 * A block: u32 length of what is compressed, that, the chain hash before the first record, then the random bytes of
 * ids. Compressed are for each record the number of its frame; for each with a frame the time since the one before, and
 * of its id the step from the one before, where there is none 0 and how far its time is from the record's; then texts.
 * `isBare` tells which records have their texts in the segment's, `seq` is the number of the first.
 */
export function encodeBlock(
  prevHash: Uint8Array,
  lines: readonly string[],
  records: readonly ActivityRecord[],
  isBare: readonly boolean[],
  seq: number,
): Uint8Array {
  const frames = new Map<string, number>();
  const numbers = new Uint8Array(records.length);
  const columns = new Writer();
  const ids: Uint8Array[] = [];
  const insides: string[] = [];
  let last = { createdAt: 0, id: undefined as Uint8Array | undefined };
  for (const [at, record] of records.entries()) {
    const line = lines[at] ?? '';
    const id = idToBytes(prefix, record.id);
    const isPlain = isBare[at] && record.seq === seq + at && Math.abs(record.createdAt) <= latestTime;
    const frame = id && isPlain && Number.isInteger(record.createdAt) ? frameOf(line, record) : undefined;
    const text = frame && `${frame.front}\n${frame.back}\n${frame.inside === '' ? '' : '+'}`;
    const number = text === undefined ? undefined : (frames.get(text) ?? frames.size);
    if (!id || !frame || text === undefined || number === undefined || number >= wholeLine) {
      numbers[at] = wholeLine;
      insides.push(line);
      continue;
    }
    frames.set(text, number);
    numbers[at] = number;
    if (frame.inside !== '') insides.push(frame.inside);
    columns.add(record.createdAt - last.createdAt);
    const step = stepFrom(last.id, id);
    columns.add(step);
    if (step === 0) {
      columns.add(timeOf(id) - record.createdAt);
      ids.push(id.subarray(timeBytes));
    }
    last = { createdAt: record.createdAt, id };
  }
  const texts = utf8([frames.size, ...frames.keys(), ...insides].join('\n'));
  const packed = compressPart(concatBytes(numbers, ...prefixed(columns.bytes), texts));
  return concatBytes(...prefixed(packed), prevHash, ...ids);
}

/** Where a block stands in its segment. */
interface BlockPlace {
  /** Position of its first record, and that one's number. */
  readonly first: number;
  readonly seq: number;
  readonly records: number;
}

/** Undefined for bytes that are none. */
export function decodeBlock(part: Uint8Array, place: BlockPlace, texts: SegmentTexts): SegmentBlock | undefined {
  const outer = new Reader(part);
  const inner = new Reader(inflatePart(outer.take(outer.u32())));
  const prevHash = new Uint8Array(outer.take(hashLength));
  const numbers = inner.take(place.records);
  const columns = new Reader(inner.take(inner.u32()));
  const all = fromUtf8(inner.rest())?.split('\n');
  const count = Number(all?.[0]);
  if (!all || prevHash.length !== hashLength || numbers.length !== place.records) return undefined;
  const frames = Array.from({ length: count }, (_, at) => all.slice(1 + at * 3, 4 + at * 3));
  const { records, first, seq } = place;
  // Behind the frames stands for each record in turn what is inside, or the whole line, where there is such a thing.
  let next = 1 + count * 3;
  const inside = new Uint32Array(records);
  const times = new Float64Array(records);
  const ids = new Uint8Array(records * idBytes);
  const id = new Uint8Array(idBytes);
  let createdAt = 0;
  for (let at = 0; at < records; at++) {
    const number = numbers[at] ?? wholeLine;
    if (number === wholeLine || frames[number]?.[2] === '+') inside[at] = next++;
    if (number === wholeLine) continue;
    createdAt += columns.number();
    const step = columns.number();
    if (step === 0) setId(id, createdAt + columns.number(), outer.take(randomBytes));
    else addToId(id, step);
    times[at] = createdAt;
    ids.set(id, at * idBytes);
  }
  if (!outer.isAtEnd || !columns.isAtEnd || next !== all.length) return undefined;
  const textAt = ({ addresses, numbers }: Origins, at: number): string | undefined =>
    addresses[(numbers[first + at] ?? 0) - 1];
  const line = (at: number): string => {
    const between = all[inside[at] ?? 0] ?? '';
    const frame = frames[numbers[at] ?? wholeLine];
    if (!frame) return between;
    const [front = '', back = '', more] = frame;
    const keyid = textAt(texts.keyids, at) ?? '';
    const start = head(textAt(texts.addresses, at), times[at] ?? 0, idFromBytes(prefix, ids, at * idBytes), keyid);
    return front + start + (more === '+' ? between : '') + tail(textAt(texts.rings, at) ?? '', seq + at) + back;
  };
  return { prevHash, line, records };
}

function setId(id: Uint8Array, time: number, random: Uint8Array): void {
  const view = new DataView(id.buffer);
  view.setUint16(0, Math.floor(time / 0x1_0000_0000));
  view.setUint32(2, time % 0x1_0000_0000);
  id.set(random, timeBytes);
}

function addToId(id: Uint8Array, step: number): void {
  const view = new DataView(id.buffer);
  view.setUint32(12, view.getUint32(12) + step);
}
