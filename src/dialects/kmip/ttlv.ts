// TTLV, the encoding of KMIP (specification 1.4 §9.1): each item is a tag of 3 bytes, a type, a length and a value that
// is padded to 8 bytes. Messages are bounded in length before they are read, and in depth and number of items while
// they are decoded.
import { equalBytes, fromUtf8, utf8 } from '../../crypto/bytes.ts';
import { Refusal, reasons } from './reasons.ts';

const typeCodes = {
  structure: 1,
  integer: 2,
  long: 3,
  big: 4,
  enumeration: 5,
  boolean: 6,
  text: 7,
  bytes: 8,
  date: 9,
  interval: 10,
  'extended-date': 11,
} as const;

export type ItemType = keyof typeof typeCodes;

/** Dates are in seconds since 1970, extended ones in microseconds; big integers are two's complement, as sent. */
interface Values {
  readonly structure: readonly Item[];
  readonly integer: number;
  readonly long: bigint;
  readonly big: Uint8Array;
  readonly enumeration: number;
  readonly boolean: boolean;
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly date: bigint;
  readonly interval: number;
  readonly 'extended-date': bigint;
}

export type Item = {
  readonly [Type in ItemType]: { readonly tag: number; readonly type: Type; readonly value: Values[Type] };
}[ItemType];

export type Structure = Extract<Item, { readonly type: 'structure' }>;

/** Types by code. */
const typeNames = new Map(Object.entries(typeCodes).map(([name, code]) => [code as number, name as ItemType]));

/** Length fields of types that have one length. */
const fixedLengths: Readonly<Partial<Record<ItemType, number>>> = {
  integer: 4,
  long: 8,
  enumeration: 4,
  boolean: 8,
  date: 8,
  interval: 4,
  'extended-date': 8,
};

/** Bytes of tag, type and length. */
export const headLength = 8;

export const ttlvLimits = { depth: 32, items: 20_000 } as const;

function malformed(problem: string): Refusal {
  return new Refusal(reasons.invalidMessage, `malformed TTLV: ${problem}`);
}

/** The item that fills the bytes exactly. Byte strings are copies. Throws `Refusal` for anything else. */
export function decodeItem(bytes: Uint8Array): Item {
  const reader = new Reader(bytes);
  const item = reader.item(bytes.length, 0);
  if (reader.at !== bytes.length) throw malformed('bytes after the item');
  return item;
}

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #items = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The next item, which must end at or before `end`. */
  item(end: number, depth: number): Item {
    if (depth >= ttlvLimits.depth) throw malformed('nested too deep');
    if (++this.#items > ttlvLimits.items) throw malformed('too many items');
    if (end - this.at < headLength) throw malformed('cut off');
    const tag = this.#view.getUint32(this.at) >>> 8;
    if (tag >>> 16 !== 0x42 && tag >>> 16 !== 0x54) throw malformed('a tag that is none');
    const type = typeNames.get(this.#bytes[this.at + 3] ?? 0);
    if (type === undefined) throw malformed('an unknown type');
    const length = this.#view.getUint32(this.at + 4);
    const start = this.at + headLength;
    if (length > end - start) throw malformed('a length beyond its parent');
    this.#checkLength(type, length);
    this.at = start;
    const item = this.#valued(tag, type, start + length, depth);
    this.at = start + length;
    this.#skipPadding(end);
    return item;
  }

  #checkLength(type: ItemType, length: number): void {
    const fixed = fixedLengths[type];
    if (fixed !== undefined && length !== fixed) throw malformed(`length ${length} of the type ${type}`);
    if (type === 'big' && (length === 0 || length % 8 !== 0)) throw malformed('length of a big integer');
    if (type === 'structure' && length % 8 !== 0) throw malformed('length of a structure');
  }

  #valued(tag: number, type: ItemType, stop: number, depth: number): Item {
    const { at } = this;
    switch (type) {
      case 'structure': {
        const value: Item[] = [];
        while (this.at < stop) value.push(this.item(stop, depth + 1));
        return { tag, type, value };
      }
      case 'integer':
        return { tag, type, value: this.#view.getInt32(at) };
      case 'enumeration':
      case 'interval':
        return { tag, type, value: this.#view.getUint32(at) };
      case 'long':
      case 'date':
      case 'extended-date':
        return { tag, type, value: this.#view.getBigInt64(at) };
      case 'boolean': {
        const value = this.#view.getBigUint64(at);
        if (value > 1n) throw malformed('a boolean that is neither true nor false');
        return { tag, type, value: value === 1n };
      }
      case 'text': {
        const value = fromUtf8(this.#bytes.subarray(at, stop));
        if (value === undefined) throw malformed('a text that is not UTF-8');
        return { tag, type, value };
      }
      case 'bytes':
      case 'big':
        return { tag, type, value: this.#bytes.slice(at, stop) };
    }
  }

  #skipPadding(end: number): void {
    const next = (this.at + 7) & ~7;
    if (next > end) throw malformed('cut off');
    for (let at = this.at; at < next; at++) if (this.#bytes[at] !== 0) throw malformed('padding that is not zero');
    this.at = next;
  }
}

function lengthOf(item: Item): number {
  switch (item.type) {
    case 'structure':
      return item.value.reduce((sum, each) => sum + headLength + padded(lengthOf(each)), 0);
    case 'text':
      return utf8Length(item.value);
    case 'big':
    case 'bytes':
      return item.value.length;
    default:
      return fixedLengths[item.type] ?? 0;
  }
}

function utf8Length(text: string): number {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return utf8(text).length;
  return text.length;
}

function padded(length: number): number {
  return (length + 7) & ~7;
}

/** Bytes of the item as it is sent. */
export function encodedLength(item: Item): number {
  return headLength + padded(lengthOf(item));
}

export function encodeItem(item: Item): Uint8Array {
  const bytes = new Uint8Array(encodedLength(item));
  write(item, bytes, new DataView(bytes.buffer), 0);
  return bytes;
}

/** Returns the place behind the item. */
function write(item: Item, bytes: Uint8Array, view: DataView, at: number): number {
  const { tag, type, value } = item;
  view.setUint32(at, tag << 8);
  view.setUint8(at + 3, typeCodes[type]);
  const start = at + headLength;
  if (type === 'structure') {
    let next = start;
    for (const each of value) next = write(each, bytes, view, next);
    view.setUint32(at + 4, next - start);
    return next;
  }
  const length = lengthOf(item);
  view.setUint32(at + 4, length);
  if (type === 'integer') view.setInt32(start, value);
  else if (type === 'enumeration' || type === 'interval') view.setUint32(start, value);
  else if (type === 'boolean') view.setBigUint64(start, value ? 1n : 0n);
  else if (type === 'text') bytes.set(utf8(value), start);
  else if (type === 'bytes' || type === 'big') bytes.set(value, start);
  else view.setBigInt64(start, value);
  return start + padded(length);
}

export const structure = (tag: number, ...value: readonly (Item | undefined | readonly Item[])[]): Structure => ({
  tag,
  type: 'structure',
  value: value.flatMap((each) => each ?? []),
});
export const integer = (tag: number, value: number): Item => ({ tag, type: 'integer', value });
export const enumeration = (tag: number, value: number): Item => ({ tag, type: 'enumeration', value });
export const text = (tag: number, value: string): Item => ({ tag, type: 'text', value });
export const byteString = (tag: number, value: Uint8Array): Item => ({ tag, type: 'bytes', value });
export const boolean = (tag: number, value: boolean): Item => ({ tag, type: 'boolean', value });
export const interval = (tag: number, value: number): Item => ({ tag, type: 'interval', value });
export const long = (tag: number, value: bigint): Item => ({ tag, type: 'long', value });
/** A date from epoch milliseconds. */
export const date = (tag: number, time: number): Item => ({
  tag,
  type: 'date',
  value: BigInt(Math.floor(time / 1000)),
});

/** An unsigned number as a big integer: with a sign bit, and as long as a multiple of 8. */
export function bigInteger(tag: number, unsigned: Uint8Array): Item {
  const value = new Uint8Array((unsigned.length + 1 + 7) & ~7);
  value.set(unsigned, value.length - unsigned.length);
  return { tag, type: 'big', value };
}

/** All items of that tag. */
export function all({ value }: Structure, tag: number): readonly Item[] {
  return value.filter((each) => each.tag === tag);
}

/** The item of that tag; undefined if there is none. Throws `Refusal` if there are several. */
export function one({ value }: Structure, tag: number): Item | undefined {
  let found: Item | undefined;
  for (const each of value) {
    if (each.tag !== tag) continue;
    if (found) throw new Refusal(reasons.invalidMessage, 'a field is there twice');
    found = each;
  }
  return found;
}

/** The value of the field; undefined if it is absent. Throws `Refusal` for one of another type. */
export function fieldOf<Type extends ItemType>(
  from: Structure | undefined,
  tag: number,
  type: Type,
): Values[Type] | undefined {
  const found = from && one(from, tag);
  if (!found) return undefined;
  return valueIn(found, type);
}

/** The item's value. Throws `Refusal` if it has another type. */
export function valueIn<Type extends ItemType>(item: Item, type: Type): Values[Type] {
  // Cast: types of values are bound to the names of types above.
  if (item.type === type) return item.value as Values[Type];
  const tag = item.tag.toString(16).padStart(6, '0');
  throw new Refusal(reasons.invalidMessage, `the field ${tag} has the type ${item.type}, not ${type}`);
}

/** The structure of that tag; undefined if there is none. */
export function structureIn(from: Structure | undefined, tag: number): Structure | undefined {
  const value = fieldOf(from, tag, 'structure');
  return value && { tag, type: 'structure', value };
}

/** Whether two values are the same, whatever their tags. */
export function isSameValue(a: Item, b: Item): boolean {
  if (a.type !== b.type) return false;
  if (a.type === 'structure') {
    const other = b.value as Structure['value'];
    return (
      a.value.length === other.length &&
      a.value.every((each, n) => {
        const its = other[n];
        return its !== undefined && its.tag === each.tag && isSameValue(each, its);
      })
    );
  }
  if (a.value instanceof Uint8Array) return equalBytes(a.value, b.value as Uint8Array);
  return a.value === b.value;
}
