// Columns are how a segment stores its records: field by field instead of line by line. Of an ordinary record only the
// 10 random bytes of its id do not compress. A line that the columns cannot reproduce byte for byte is stored as it is.
import { concatBytes, fromUtf8, utf8 } from '../../crypto/bytes.ts';
import { idFromBytes, idToBytes } from '../../crypto/ulid.ts';
import type { ActivityRecord } from '../port.ts';
import { hashLength } from './chain.ts';
import { compressPart, inflatePart } from './compression.ts';
import { decodeOrigins, OriginCollector, type Origins } from './origins.ts';
import { type Alike, addressMember, lineParts } from './record.ts';
import type { SegmentBlock } from './segment.ts';

const prefix = 'act';
/** Bytes of an id's time, before its random ones. */
const timeBytes = 6;
const randomBytes = 10;
const idBytes = timeBytes + randomBytes;
/** Differences of later times may be inexact. */
const latestTime = 2 ** 50;
/** Marks a record without a frame: its line is stored as it is. */
const wholeLine = 255;

/** The texts of a segment's records by field. */
export interface SegmentTexts {
  readonly addresses: Origins;
  /** JSON strings. */
  readonly keyids: Origins;
  readonly rings: Origins;
}

/** Numbers of a record's texts in the lists of its segment. */
export interface TextNumbers {
  readonly from: number;
  readonly by: number;
  readonly about: number;
  /** Whether the record can be stored without its texts. */
  readonly isBare: boolean;
}

/** Collects the texts, in the order of the records' positions. */
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

  /** The numbers of a record's texts; 0 for a text without a number. */
  numbersOf({ address, keyid, ringname }: Alike): TextNumbers {
    const [from, by, about] = [
      this.#addresses.numberOf(address),
      this.#keyids.numberOf(keyid),
      this.#rings.numberOf(ringname),
    ];
    return { from, by, about, isBare: (from > 0 || address === undefined) && by > 0 && about > 0 };
  }

  /** Adds the next record. */
  add({ from, by, about }: TextNumbers): void {
    this.#addresses.add(from);
    this.#keyids.add(by);
    this.#rings.add(about);
  }

  /** The list of each field, preceded by its length (u32). */
  bytes(): Uint8Array {
    return concatBytes(...[this.#addresses, this.#keyids, this.#rings].flatMap((each) => prefixed(each.bytes())));
  }
}

function prefixed(bytes: Uint8Array): [Uint8Array, Uint8Array] {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return [length, bytes];
}

/** Undefined if the bytes are malformed. */
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

/** The parts of a line that are in no column: before its fields, after them, and between keyid and ringname. */
interface Frame {
  readonly front: string;
  readonly inside: string;
  readonly back: string;
}

const timeMember = '"createdAt":';

/** `keyid` is a JSON string. */
function head(address: string | undefined, createdAt: number, id: string, keyid: string): string {
  const from = address === undefined ? '' : addressMember(address);
  return `${from}${timeMember}${createdAt},"id":"${id}","keyid":${keyid},`;
}

function tail(ringname: string, seq: number): string {
  return `"ringname":${ringname},"seq":${seq},`;
}

/** Undefined if the line cannot be rebuilt from its fields and a frame. */
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

/** Writes zigzag numbers, 7 bits a byte, lowest first. */
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

/** Milliseconds in an id's time bytes. */
function timeOf(id: Uint8Array): number {
  const [a = 0, b = 0] = id;
  return (a * 256 + b) * 0x1_0000_0000 + u32At(id, 2);
}

/** Big-endian. A DataView would give a small array a buffer of its own, which costs more than all the rest. */
function u32At(bytes: Uint8Array, at: number): number {
  const low = ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
  return (bytes[at] ?? 0) * 0x1_00_00_00 + low;
}

/** The step from the previous id of the same millisecond, or 0: ids made together count up. */
function stepFrom(before: Uint8Array | undefined, id: Uint8Array): number {
  if (!before) return 0;
  for (let at = 0; at < 12; at++) if (before[at] !== id[at]) return 0;
  return Math.max(0, u32At(id, 12) - u32At(before, 12));
}

/** The frame of a line to be added to a block; `text` is the form in which the block stores it. */
export interface LineFrame {
  readonly text: string;
  readonly inside: string;
}

function frameText({ front, inside, back }: Frame): string {
  return `${front}\n${back}\n${inside === '' ? '' : '+'}`;
}

/** The frame for the lines of records that are alike; `inside` is the text between keyid and ringname. */
export function frameOfAlike(alike: Alike, inside: string): LineFrame {
  const { front, back } = lineParts({ ...alike, address: undefined });
  const frame = { front: front.slice(0, -timeMember.length), inside, back: back.slice(1) };
  return { text: frameText(frame), inside };
}

/**
 * A block: the u32 length of the compressed part, that part, the chain hash before the first record, then the random
 * bytes of each id without a step. The compressed part holds the frame number of each record; for each framed record
 * the time since the previous one and the id's step from the previous id, or 0 and the difference of the id's time from
 * the record's; then the texts.
 */
export class BlockMaker {
  readonly #prevHash: Uint8Array;
  readonly #frames = new Map<string, number>();
  readonly #numbers: number[] = [];
  readonly #columns = new Writer();
  readonly #ids: Uint8Array[] = [];
  readonly #insides: string[] = [];
  #createdAt = 0;
  #id: Uint8Array | undefined;

  constructor(prevHash: Uint8Array) {
    this.#prevHash = prevHash;
  }

  /** `seq` is the record's number by its position; `isBare` says whether the segment has its texts. */
  add(line: string, record: ActivityRecord, isBare: boolean, seq: number): void {
    const frame = isBare && record.seq === seq ? frameOf(line, record) : undefined;
    const known = frame && { text: frameText(frame), inside: frame.inside };
    if (known && this.addFramed(known, record.createdAt, record.id)) return;
    this.#numbers.push(wholeLine);
    this.#insides.push(line);
  }

  /** Returns whether the record fits this form; if not, nothing was added. */
  addFramed({ text, inside }: LineFrame, createdAt: number, id: string): boolean {
    const bytes = idToBytes(prefix, id);
    const number = this.#frames.get(text) ?? this.#frames.size;
    const isTime = Number.isInteger(createdAt) && Math.abs(createdAt) <= latestTime;
    if (!bytes || !isTime || number >= wholeLine) return false;
    this.#frames.set(text, number);
    this.#numbers.push(number);
    if (inside !== '') this.#insides.push(inside);
    this.#columns.add(createdAt - this.#createdAt);
    const step = stepFrom(this.#id, bytes);
    this.#columns.add(step);
    if (step === 0) {
      this.#columns.add(timeOf(bytes) - createdAt);
      this.#ids.push(bytes);
    }
    this.#createdAt = createdAt;
    this.#id = bytes;
    return true;
  }

  bytes(): Uint8Array {
    const texts = utf8([this.#frames.size, ...this.#frames.keys(), ...this.#insides].join('\n'));
    const numbers = Uint8Array.from(this.#numbers);
    const packed = compressPart(concatBytes(numbers, ...prefixed(this.#columns.bytes), texts));
    const random = this.#ids.map((id) => id.subarray(timeBytes));
    return concatBytes(...prefixed(packed), this.#prevHash, ...random);
  }
}

/** The position of a block in its segment. */
interface BlockPlace {
  /** Position and sequence number of its first record. */
  readonly first: number;
  readonly seq: number;
  readonly records: number;
}

/** Undefined if the bytes are malformed. */
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
  // After the frames, for each record in turn: the text between keyid and ringname if there is one, or the whole line
  // if it has no frame.
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
