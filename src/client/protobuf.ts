// Messages of protocol buffers (proto3), field by field: numbers, text, bytes and nested messages, by field numbers.
// Groups, floating-point and negative numbers are not written; in messages that are read, they are skipped.
import { concatBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';

/** A whole number from 0 on, a boolean, a text, or bytes: of a nested message, too. */
type Single = number | boolean | string | Uint8Array;

/**
 * Fields by number. A list is a repeated field, or one that is written even if it is empty; `undefined` is left out.
 */
export type MessageFields = Readonly<Record<number, Single | readonly Single[] | undefined>>;

/** Empty values are left out, as in protobuf, but not from lists. */
export function message(fields: MessageFields): Uint8Array {
  const parts = Object.entries(fields).flatMap(([number, value]) => {
    const values = isList(value) ? value : value === undefined || isEmpty(value) ? [] : [value];
    return values.map((each) => field(Number(number), each));
  });
  return concatBytes(...parts);
}

/** Entries of a map of messages, as they are written: as a repeated field. */
export function mapEntries(values: Readonly<Record<string, Uint8Array>>): readonly Uint8Array[] {
  return Object.entries(values).map(([key, value]) => message({ 1: [key], 2: [value] }));
}

function isList(value: MessageFields[number]): value is readonly Single[] {
  return Array.isArray(value);
}

function isEmpty(value: Single): boolean {
  return value instanceof Uint8Array ? value.length === 0 : !value;
}

function field(number: number, value: Single): Uint8Array {
  if (typeof value === 'number' || typeof value === 'boolean') {
    return Uint8Array.of(...varint(number * 8), ...varint(Number(value)));
  }
  const bytes = typeof value === 'string' ? utf8(value) : value;
  return concatBytes(Uint8Array.of(...varint(number * 8 + 2), ...varint(bytes.length)), bytes);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 0x80)) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest % 0x80) + 0x80);
  }
}

/** Fields of a message. Accessors return the last value of a field, or the empty one if it is absent. */
export interface ReadFields {
  bytes(number: number): Uint8Array;
  /** Throws `invalid` unless it is UTF-8. */
  text(number: number): string;
  number(number: number): number;
  /** The values of a repeated field of bytes, text or messages. */
  all(number: number): readonly Uint8Array[];
  has(number: number): boolean;
}

/** Reads a message. `what` names it in the error if it is malformed, which is `invalid`. */
export function fieldsOf(bytes: Uint8Array, what: string): ReadFields {
  const malformed = (): KmsError => new KmsError('invalid', `expected ${what}`);
  const lengthy = new Map<number, Uint8Array[]>();
  const numbers = new Map<number, number>();
  for (const [number, value] of entriesOf(bytes, malformed)) {
    if (typeof value === 'number') numbers.set(number, value);
    else if (lengthy.get(number)?.push(value) === undefined) lengthy.set(number, [value]);
  }
  const all = (number: number) => lengthy.get(number) ?? [];
  return {
    all,
    bytes: (number) => all(number).at(-1) ?? new Uint8Array(),
    text(number) {
      const text = fromUtf8(all(number).at(-1) ?? new Uint8Array());
      if (text === undefined) throw malformed();
      return text;
    },
    number: (number) => numbers.get(number) ?? 0,
    has: (number) => lengthy.has(number) || numbers.has(number),
  };
}

function* entriesOf(bytes: Uint8Array, malformed: () => KmsError): Generator<[number, Uint8Array | number]> {
  let at = 0;
  /** Numbers above 2^53 are not exact: no length and no number of a field is as large. */
  const number = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) throw malformed();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  };
  const take = (length: number): Uint8Array => {
    at += length;
    if (at > bytes.length) throw malformed();
    return bytes.slice(at - length, at);
  };
  while (at < bytes.length) {
    const key = number();
    const [field, kind] = [Math.floor(key / 8), key % 8];
    if (kind === 0) yield [field, number()];
    else if (kind === 1) take(8);
    else if (kind === 5) take(4);
    else if (kind === 2) yield [field, take(number())];
    else throw malformed();
  }
}
