// Origins are the texts of one field of a segment's records that repeat, in no order (where they came from, by which
// key, about which ring): each text once, and for each record the number of its own. They stand apart from the records,
// since between the other fields one of a hundred addresses takes five bytes a record, here less than one. A search by
// address reads them in place of postings.
import { concatBytes, fromUtf8, utf8 } from '../../crypto/bytes.ts';
import type { AddressSet } from '../../model/addresses.ts';

export interface Origins {
  /** The first has the number 1. */
  readonly addresses: readonly string[];
  /** By position; 0 where a record has none, or has it with its other fields. */
  readonly numbers: Uint16Array;
}

/** Numbers the texts of one field of a segment's records, and keeps the number of each record in their order. */
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

  /** The number of a text, 0 where it has none: one of too many, or one that cannot stand in a list. */
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
   * Length of the list u32, the texts with a line feed between them, then for each record the high byte of its number,
   * then for each the low byte. Empty where no record has one.
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

/** Undefined for bytes that are none. */
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

/** The positions that came from there, ascending. */
export function positionsFrom({ addresses, numbers }: Origins, wanted: AddressSet): number[] {
  const isWanted = [false, ...addresses.map(wanted.has)];
  const positions: number[] = [];
  for (let at = 0; at < numbers.length; at++) if (isWanted[numbers[at] ?? 0]) positions.push(at);
  return positions;
}
