// Origins are the recurring texts of one field of a segment's records (addresses, key ids or rings): each text once, in
// no order, and for each record the number of its text. They are stored apart from the records: among the other fields,
// one of a hundred addresses takes five bytes a record, here less than one. A search by address uses them instead of
// postings.
import { concatBytes, fromUtf8, utf8 } from '../../crypto/bytes.ts';
import type { AddressSet } from '../../model/addresses.ts';

export interface Origins {
  /** The first text has number 1. */
  readonly addresses: readonly string[];
  /** By position; 0 if a record has no text, or has it stored with its other fields. */
  readonly numbers: Uint16Array;
}

/** Numbers the texts of one field of a segment's records, and keeps the number for each record in order. */
export class OriginCollector {
  readonly #texts = new Map<string, number>();
  readonly #numbers: Uint16Array;
  #count = 0;

  constructor(records: number) {
    this.#numbers = new Uint16Array(records);
  }

  get texts(): Iterable<string> {
    return this.#texts.keys();
  }

  /** The number of a text; 0 if there are too many texts or this one cannot be stored in the list. */
  numberOf(text: string | undefined): number {
    if (text === undefined || text.includes('\n') || !text.isWellFormed()) return 0;
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.size + 1;
    if (number > 0xffff) return 0;
    this.#texts.set(text, number);
    return number;
  }

  /** Adds the number of the next record's text. */
  add(number: number): void {
    this.#numbers[this.#count++] = number;
  }

  /**
   * Length of the list (u32), the texts with a line feed between them, then the high byte of each record's number, then
   * the low bytes. Empty if no record has a text.
   */
  bytes(): Uint8Array {
    if (this.#texts.size === 0) return new Uint8Array();
    const text = utf8([...this.#texts.keys()].join('\n'));
    const lead = new Uint8Array(4);
    new DataView(lead.buffer).setUint32(0, text.length);
    const numbers = this.#numbers;
    const columns = new Uint8Array(numbers.length * 2);
    for (let at = 0; at < numbers.length; at++) {
      const number = numbers[at] ?? 0;
      columns[at] = number >> 8;
      columns[numbers.length + at] = number;
    }
    return concatBytes(lead, text, columns);
  }
}

/** Undefined if the bytes are malformed. */
export function decodeOrigins(bytes: Uint8Array, records: number): Origins | undefined {
  if (bytes.length < 4) return undefined;
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  const addresses = fromUtf8(bytes.subarray(4, end))?.split('\n');
  if (!addresses || bytes.length !== end + 2 * records) return undefined;
  const numbers = new Uint16Array(records);
  for (let at = 0; at < records; at++) {
    numbers[at] = ((bytes[end + at] ?? 0) << 8) | (bytes[end + records + at] ?? 0);
  }
  return { addresses, numbers };
}

/** The positions of records from these addresses, ascending. */
export function positionsFrom({ addresses, numbers }: Origins, wanted: AddressSet): number[] {
  const isWanted = [false, ...addresses.map(wanted.has)];
  const positions: number[] = [];
  for (let at = 0; at < numbers.length; at++) if (isWanted[numbers[at] ?? 0]) positions.push(at);
  return positions;
}
