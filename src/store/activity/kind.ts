// A kind of records: what many of them have alike, which is all but number, time and id. Their canonical lines are put
// together from it, as text or as the bytes that the chain hashes, without a look at anything that they have alike.
import { utf8 } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/fast-hash.ts';
import type { ActivityInput } from '../port.ts';
import { type Alike, activityLine, type LineParts, lineParts, propsMember } from './record.ts';

/** An id of the appliance's own: prefix and ULID. */
export const idLength = 30;

/** A line as bytes, behind room for the hash before it. Time, id and number are put in for each record. */
interface LineBytes {
  readonly bytes: Uint8Array;
  /** Digits of the time, and of the number. */
  readonly timeDigits: number;
  readonly seqDigits: number;
  /** Where each of them ends, and where the id begins. */
  readonly timeEnd: number;
  readonly seqEnd: number;
  readonly idAt: number;
}

export class RecordKind {
  readonly alike: Alike;
  /** The one entry of `props` that many records share; undefined where there is none. */
  readonly keyVersion: number | undefined;
  /** Bytes of a line but for time, id and number; -1 where a line says a text otherwise than it was given. */
  readonly lineBytes: number;
  // Made when somebody wants lines: a server mostly keeps records until a checkpoint, on its thread, has covered them.
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

  /** What a line has of them. */
  get inside(): string {
    return this.keyVersion === undefined ? '' : propsMember(this.props);
  }

  /** Characters of a line but for time, id and number. */
  get lineLength(): number {
    const { front, middle, back } = this.#lineParts();
    return front.length + middle.length + back.length + aroundId.length;
  }

  line(createdAt: number, id: string, seq: number): string {
    const { front, middle, back } = this.#lineParts();
    return `${front}${createdAt},"id":"${id}"${middle}${seq}${back}`;
  }

  /**
   * The hash of a record's line, which follows the hash `before`; its id is `idLength` bytes of `ids`, its time whole
   * and not negative.
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

/** What stands around an id. */
const aroundId = ',"id":""';

/** Decimal digits of a whole number that is not negative. */
export function digitsOf(value: number): number {
  let digits = 1;
  for (let power = 10; value >= power; power *= 10) digits++;
  return digits;
}

/** Writes the digits that end before `end`. */
function putDigits(bytes: Uint8Array, end: number, value: number): void {
  let at = end;
  for (let rest = value; ; ) {
    const tenth = Math.floor(rest / 10);
    bytes[--at] = 48 + rest - tenth * 10;
    if (tenth === 0) return;
    rest = tenth;
  }
}

/** Undefined for what is no number that JSON says as it is. */
export function keyVersionOf({ keyVersion }: ActivityInput['props']): number | undefined {
  return typeof keyVersion === 'number' && Number.isSafeInteger(keyVersion) && keyVersion > 0 ? keyVersion : undefined;
}

function lineBytes(alike: Alike, props: ActivityInput['props']): number {
  const { action, keyid, ringname, address = '' } = alike;
  for (const text of [action, keyid, ringname, address]) if (!text.isWellFormed()) return -1;
  // Time and number are a digit each.
  return Buffer.byteLength(activityLine({ ...alike, id: '', createdAt: 0, props }, 0)) - 2;
}
