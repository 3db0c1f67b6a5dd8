// A block of the newest records, in memory. Fields that many records share are stored once, as a numbered kind; each
// record's own time and id are in arrays of a fixed size. A record thus takes 40 bytes where its line has 200, and
// gives the garbage collector no work; the line is built on demand. A record that does not fit this form keeps its line
// here.
import type { ActivityInput, ActivityRecord } from '../port.ts';
import { hashLength } from './chain.ts';
import { digitsOf, idLength, keyVersionOf, RecordKind } from './kind.ts';
import { type Alike, activityLine, hasEntries, parseActivityLine } from './record.ts';
import type { SegmentMaker } from './segment-writer.ts';

/** Records in a block, a power of two. */
export const blockRecords = 2048;

const noProps = {};

/** Newest kinds that a record is compared with; a kind may thus be there twice. */
const mostCompared = 16;
/** Instead of a kind number: only the record's line is known, as it came from the disk. */
const unread = 0xffff;

export class TailBlock {
  #count = 0;
  readonly #kinds: RecordKind[] = [];
  readonly #createdAt: Float64Array;
  readonly #kindOf: Uint16Array;
  /** Zeros for an id that is not in our form. */
  readonly #ids: Buffer;
  /** The stored lines, concatenated, and the end of each record's; allocated with the first line. */
  #text: Buffer | undefined;
  #textEnds: Uint32Array | undefined;
  #hashes: Uint8Array | undefined;

  constructor() {
    const times = blockRecords * 8;
    const kinds = blockRecords * 2;
    const bytes = new ArrayBuffer(times + kinds + blockRecords * idLength);
    this.#createdAt = new Float64Array(bytes, 0, blockRecords);
    this.#kindOf = new Uint16Array(bytes, times, blockRecords);
    this.#ids = Buffer.from(bytes, times + kinds);
  }

  get count(): number {
    return this.#count;
  }

  /** Throws `invalid` for props that JSON cannot represent, and then changes nothing. */
  push(record: ActivityInput, seq: number): void {
    const kind = this.#kindFor(record, record.props);
    const at = this.#count;
    const isShort =
      this.#read(at, record, kind) &&
      record.reporter === undefined &&
      isShared(record.props) &&
      (this.#kinds[kind]?.lineBytes ?? -1) >= 0;
    this.#append(isShort ? '' : activityLine(record, seq));
  }

  /**
   * Adds a record without a reporter and with no props but a key version, whose id is `idLength` word characters of
   * `bytes`.
   */
  pushAlike(
    alike: Alike,
    createdAt: number,
    bytes: Uint8Array,
    idAt: number,
    seq: number,
    keyVersion: number | undefined,
  ): void {
    const props = keyVersion === undefined ? noProps : { keyVersion };
    const kind = this.#kindFor(alike, props);
    if ((this.#kinds[kind]?.lineBytes ?? -1) < 0) {
      const id = String.fromCharCode(...bytes.subarray(idAt, idAt + idLength));
      this.push({ ...alike, id, createdAt, props }, seq);
      return;
    }
    const at = this.#count;
    this.#append('');
    this.#kindOf[at] = kind;
    this.#createdAt[at] = createdAt;
    for (let to = at * idLength, from = idAt; from < idAt + idLength; ) this.#ids[to++] = bytes[from++] ?? 0;
  }

  /** Adds a record by its line, to be parsed later. */
  pushLine(line: string): void {
    this.#append(line);
    this.#kindOf[this.#count - 1] = unread;
  }

  isRead(at: number): boolean {
    return this.#kindOf[at] !== unread;
  }

  /** Parses the line that a record came with; returns whether it is that of record `seq`. */
  read(at: number, seq: number): boolean {
    const record = parseActivityLine(this.#textOf(at));
    if (record?.seq !== seq) return false;
    this.#read(at, record, this.#kindFor(record, record.props));
    return true;
  }

  /** The canonical line. */
  line(at: number, seq: number): string {
    return this.#textOf(at) || this.#kind(at).line(this.createdAt(at), this.#idOf(at), seq);
  }

  /** Length of the canonical line in bytes. */
  lineBytes(at: number, seq: number): number {
    const text = this.#textLength(at);
    if (text > 0) return text;
    const createdAt = this.createdAt(at);
    const isWhole = Number.isSafeInteger(createdAt) && createdAt >= 0;
    const digits = isWhole ? digitsOf(createdAt) : String(createdAt).length;
    return this.#kind(at).lineBytes + idLength + digits + digitsOf(seq);
  }

  /** Undefined if the line is no record. */
  record(at: number, seq: number): ActivityRecord | undefined {
    const text = this.#textOf(at);
    return text === '' ? this.#record(at, seq) : parseActivityLine(text);
  }

  /** Adds the record at a position to a segment. */
  addTo(segment: SegmentMaker, at: number): void {
    const text = this.#textOf(at);
    if (text === '') segment.addAlike(this.#kind(at), this.createdAt(at), this.#ids, at * idLength);
    else segment.add(text);
  }

  /** Whether a line is stored for the record, which its kind, time and id do not fully describe. */
  hasMore(at: number): boolean {
    return this.#textLength(at) > 0;
  }

  createdAt(at: number): number {
    return this.#createdAt[at] ?? Number.NaN;
  }

  /** A test whether the kind of a record at a position satisfies `fits`. */
  thatFit(fits: (kind: RecordKind) => boolean): (at: number) => boolean {
    const fitting = this.#kinds.map(fits);
    return (at) => fitting[this.#kindOf[at] ?? unread] === true;
  }

  /** The last record with this id before `end`. */
  find(id: string, end: number): number | undefined {
    if (!hasOwnForm(id)) {
      for (let at = Math.min(end, this.#count) - 1; at >= 0; at--) {
        if (this.hasMore(at) && parseActivityLine(this.#textOf(at))?.id === id) return at;
      }
      return undefined;
    }
    const ids = this.#ids.subarray(0, Math.min(end, this.#count) * idLength);
    const wanted = Buffer.from(id, 'latin1');
    let found = ids.lastIndexOf(wanted);
    while (found > 0 && found % idLength !== 0) found = ids.lastIndexOf(wanted, found - 1);
    return found < 0 ? undefined : found / idLength;
  }

  /** Keeps the first `count` records. */
  cut(count: number): void {
    if (count >= this.#count) return;
    this.#count = count;
    let kinds = 0;
    for (const kind of this.#kindOf.subarray(0, count)) if (kind !== unread && kind >= kinds) kinds = kind + 1;
    this.#kinds.length = kinds;
  }

  /** The record's 32-byte hash, a view that is valid as long as the block. */
  hashAt(at: number): Uint8Array {
    return this.#allHashes().subarray(at * hashLength, (at + 1) * hashLength);
  }

  setHash(at: number, hash: Uint8Array): void {
    this.#allHashes().set(hash, at * hashLength);
  }

  #allHashes(): Uint8Array {
    this.#hashes ??= new Uint8Array(blockRecords * hashLength);
    return this.#hashes;
  }

  #kind(at: number): RecordKind {
    return this.#kinds[this.#kindOf[at] ?? unread] ?? noKind;
  }

  #kindFor({ action, keyid, ringname, status, validAction, address }: Alike, props: ActivityInput['props']): number {
    const kinds = this.#kinds;
    const keyVersion = keyVersionOf(props);
    for (let i = kinds.length - 1; i >= Math.max(0, kinds.length - mostCompared); i--) {
      const kind = kinds[i];
      const known = kind?.alike;
      if (
        known?.keyid === keyid &&
        known.action === action &&
        known.ringname === ringname &&
        known.status === status &&
        known.validAction === validAction &&
        known.address === address &&
        kind?.keyVersion === keyVersion
      ) {
        return i;
      }
    }
    return kinds.push(new RecordKind({ action, keyid, ringname, status, validAction, address }, keyVersion)) - 1;
  }

  /** Returns whether the id has our form. */
  #read(at: number, { id, createdAt }: ActivityInput, kind: number): boolean {
    this.#kindOf[at] = kind;
    this.#createdAt[at] = createdAt;
    const start = at * idLength;
    const isOwn = hasOwnForm(id);
    if (isOwn) for (let i = 0; i < idLength; i++) this.#ids[start + i] = id.charCodeAt(i);
    else this.#ids.fill(0, start, start + idLength);
    return isOwn;
  }

  #append(line: string): void {
    const at = this.#count++;
    if (line === '' && !this.#textEnds) return;
    this.#textEnds ??= new Uint32Array(blockRecords);
    const start = this.#textStart(at);
    this.#textEnds[at] = line === '' ? start : start + this.#room(start, line).write(line, start);
  }

  /** Ensures room for a line: UTF-8 takes at most 3 bytes for a UTF-16 code unit. */
  #room(start: number, line: string): Buffer {
    const wanted = start + line.length * 3;
    if (this.#text && this.#text.length >= wanted) return this.#text;
    const text = Buffer.allocUnsafeSlow(Math.max(wanted, start * 2));
    if (this.#text) text.set(this.#text.subarray(0, start));
    this.#text = text;
    return text;
  }

  #textStart(at: number): number {
    return at === 0 ? 0 : (this.#textEnds?.[at - 1] ?? 0);
  }

  #textLength(at: number): number {
    return this.#textEnds === undefined ? 0 : (this.#textEnds[at] ?? 0) - this.#textStart(at);
  }

  #textOf(at: number): string {
    if (this.#textLength(at) === 0) return '';
    return this.#text?.toString('utf8', this.#textStart(at), this.#textEnds?.[at]) ?? '';
  }

  #record(at: number, seq: number): ActivityRecord {
    const { alike, props } = this.#kind(at);
    const { action, keyid, ringname, status, validAction, address } = alike;
    const id = this.#idOf(at);
    const record = { seq, id, createdAt: this.createdAt(at), keyid, action, ringname, validAction, status, props };
    return address === undefined ? record : { ...record, address };
  }

  #idOf(at: number): string {
    return this.#ids.toString('latin1', at * idLength, (at + 1) * idLength);
  }
}

const noKind = new RecordKind({ action: '', keyid: '', ringname: '', status: 0, validAction: false, address: '' });

/** Whether a kind can represent all the props. */
function isShared(props: ActivityInput['props']): boolean {
  if (!hasEntries(props)) return true;
  return keyVersionOf(props) !== undefined && Object.keys(props).length === 1;
}

/** By character code: 1 for each character that may occur in an id of ours. */
const isWordCharacter = Uint8Array.from({ length: 128 }, (_, code) => Number(/\w/.test(String.fromCharCode(code))));

/** Whether the id is `idLength` word characters. Runs for each record: a regular expression takes ten times as long. */
function hasOwnForm(id: string): boolean {
  if (id.length !== idLength) return false;
  for (let at = 0; at < idLength; at++) if (isWordCharacter[id.charCodeAt(at)] !== 1) return false;
  return true;
}
