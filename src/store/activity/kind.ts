// A kind groups records that are equal except for number, time and id. Their canonical lines are built from it, as text
// or as the bytes that the chain hashes, without encoding the common fields again.
import { utf8 } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import type { ActivityInput } from '../port.ts';
import { type Alike, activityLine, type LineParts, lineParts, propsMember } from './record.ts';

/** Length of an id of the appliance's own: prefix and ULID. */
export const idLength = 30;

/** A line as bytes, after room for the previous hash. Time, id and number are filled in for each record. */
interface LineBytes {
  readonly bytes: Uint8Array;
  /** Number of digits of the time, and of the sequence number. */
  readonly timeDigits: number;
  readonly seqDigits: number;
  /** Offsets of the ends of both, and of the start of the id. */
  readonly timeEnd: number;
  readonly seqEnd: number;
  readonly idAt: number;
}

export class RecordKind {
  readonly alike: Alike;
  /** The only entry of `props` that many records share; undefined if there is none. */
  readonly keyVersion: number | undefined;
  /** Bytes of a line without time, id and number; -1 if a text is not well-formed, so that the line has it altered. */
  readonly lineBytes: number;
  // Built on first use: a server mostly keeps records only until a checkpoint, on its own thread, has covered them.
  #parts: LineParts | undefined;
  #bytes: LineBytes | undefined;

  constructor(alike: Alike, keyVersion?: number) {
    this.alike = alike;
    this.keyVersion = keyVersion;
    this.lineBytes = lineBytes(alike, this.props);
  }

  get props(): ActivityInput['props'] {
    return this.keyVersion === undefined ? {} : { keyVersion: this.keyVersion };
  }

  /** The text between keyid and ringname in a line. */
  get inside(): string {
    return this.keyVersion === undefined ? '' : propsMember(this.props);
  }

  /** Characters of a line without time, id and number. */
  get lineLength(): number {
    const { front, middle, back } = this.#lineParts();
    return front.length + middle.length + back.length + aroundId.length;
  }

  line(createdAt: number, id: string, seq: number): string {
    const { front, middle, back } = this.#lineParts();
    return `${front}${createdAt},"id":"${id}"${middle}${seq}${back}`;
  }

  /**
   * The hash of a record's line, given the hash `before` it. The id is `idLength` bytes of `ids`; the time must be a
   * whole number, not negative.
   */
  hash(before: Uint8Array, createdAt: number, ids: Buffer, idAt: number, seq: number): Uint8Array {
    const line = this.#lineBytes(before.length, digitsOf(createdAt), digitsOf(seq));
    const { bytes } = line;
    bytes.set(before);
    putDigits(bytes, line.timeEnd, createdAt);
    for (let at = 0; at < idLength; at++) bytes[line.idAt + at] = ids[idAt + at] ?? 0;
    putDigits(bytes, line.seqEnd, seq);
    return sha256(bytes);
  }

  #lineParts(): LineParts {
    this.#parts ??= lineParts(this.alike, this.inside);
    return this.#parts;
  }

  #lineBytes(room: number, timeDigits: number, seqDigits: number): LineBytes {
    const known = this.#bytes;
    if (known?.timeDigits === timeDigits && known.seqDigits === seqDigits) return known;
    const { front, middle, back } = this.#lineParts();
    const timeEnd = room + utf8(front).length + timeDigits;
    const idAt = timeEnd + aroundId.length - 1;
    const seqEnd = idAt + idLength + 1 + utf8(middle).length + seqDigits;
    const [time, id, seq] = [timeDigits, idLength, seqDigits].map((length) => '0'.repeat(length));
    const text = utf8(`${front}${time},"id":"${id}"${middle}${seq}${back}`);
    const bytes = new Uint8Array(new ArrayBuffer(room + text.length));
    bytes.set(text, room);
    this.#bytes = { bytes, timeDigits, seqDigits, timeEnd, seqEnd, idAt };
    return this.#bytes;
  }
}

/** The text around an id. */
const aroundId = ',"id":""';

/** Number of decimal digits of a whole number that is not negative. */
export function digitsOf(value: number): number {
  let digits = 1;
  for (let power = 10; value >= power; power *= 10) digits++;
  return digits;
}

/** Writes the digits so that they end before `end`. */
function putDigits(bytes: Uint8Array, end: number, value: number): void {
  let at = end;
  for (let rest = value; ; ) {
    const tenth = Math.floor(rest / 10);
    bytes[--at] = 48 + rest - tenth * 10;
    if (tenth === 0) return;
    rest = tenth;
  }
}

/** Undefined if it is not a positive safe integer. */
export function keyVersionOf({ keyVersion }: ActivityInput['props']): number | undefined {
  return typeof keyVersion === 'number' && Number.isSafeInteger(keyVersion) && keyVersion > 0 ? keyVersion : undefined;
}

function lineBytes(alike: Alike, props: ActivityInput['props']): number {
  const { action, keyid, ringname, address = '' } = alike;
  for (const text of [action, keyid, ringname, address]) if (!text.isWellFormed()) return -1;
  // Time and number count one digit each.
  return Buffer.byteLength(activityLine({ ...alike, id: '', createdAt: 0, props }, 0)) - 2;
}
