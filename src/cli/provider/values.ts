// Values of OpenTofu, of the types of its type system (cty): read from MessagePack and from the JSON of states, and
// written as MessagePack. A value may be unknown until something is applied, as a whole or in parts.
import { decode, ExtData, encode } from '@msgpack/msgpack';
import { KmsError } from '../../errors.ts';

export type Type =
  | 'string'
  | 'number'
  | 'bool'
  /** Any type: the value brings its own. */
  | 'dynamic'
  | readonly ['list' | 'set' | 'map', Type]
  | readonly ['object', Readonly<Record<string, Type>>]
  | readonly ['tuple', readonly Type[]];

class Unknown {
  /** Distinguishes it from plain objects for the compiler, too. */
  readonly isUnknown = true;
}

/** A value that is not known before something is applied. */
export const unknown = new Unknown();

/** A value with the type that its author gave it. */
export class Typed {
  readonly type: Type;
  readonly value: Value;

  constructor(type: Type, value: Value) {
    this.type = type;
    this.value = value;
  }
}

export type Value = null | string | number | boolean | Unknown | Typed | readonly Value[] | ObjectValue;
export interface ObjectValue {
  readonly [name: string]: Value;
}

/** Throws `invalid` unless the bytes are a value of this type. */
export function readValue(bytes: Uint8Array, type: Type): Value {
  let raw: unknown;
  try {
    raw = withoutDots(decode(bytes, { keyDecoder, mapKeyConverter: textKey }));
  } catch (cause) {
    throw new KmsError('invalid', `expected a value of OpenTofu: ${cause instanceof Error ? cause.message : ''}`, {
      cause,
    });
  }
  return valueFrom(raw, type, fromMessagePack);
}

/** Puts a dot before each key: the library refuses `__proto__`, which is a name like any other here. */
const keyDecoder = {
  canBeCached: () => true,
  decode: (bytes: Uint8Array, offset: number, length: number): string =>
    `.${Buffer.from(bytes.subarray(offset, offset + length)).toString()}`,
};

function textKey(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new TypeError(`a key is a ${typeof key}`);
}

function withoutDots(raw: unknown): unknown {
  if (Array.isArray(raw)) return raw.map(withoutDots);
  if (!isRecord(raw) || raw instanceof ExtData || raw instanceof Uint8Array) return raw;
  return Object.fromEntries(Object.entries(raw).map(([key, value]) => [key.slice(1), withoutDots(value)]));
}

/** The value in the JSON of a state. Throws `invalid` likewise. */
export function readJsonValue(text: string, type: Type): Value {
  return valueFrom(parsedJson(text), type, fromJson);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new KmsError('invalid', 'expected JSON of OpenTofu', { cause });
  }
}

/** How a value of any type is accompanied by its own. */
type ReadTyped = (raw: unknown) => readonly [type: Type, raw: unknown] | undefined;

const fromMessagePack: ReadTyped = (raw) => {
  if (!Array.isArray(raw) || raw.length !== 2 || !(raw[0] instanceof Uint8Array)) return undefined;
  return [typeOf(parsedJson(Buffer.from(raw[0]).toString())), raw[1]];
};

const fromJson: ReadTyped = (raw) => {
  const { type, value } = Object(raw);
  return type === undefined ? undefined : [typeOf(type), value];
};

/** Checks a type that came with a value. */
function typeOf(raw: unknown): Type {
  if (raw === 'string' || raw === 'number' || raw === 'bool' || raw === 'dynamic') return raw;
  if (!Array.isArray(raw) || raw.length !== 2) throw new KmsError('invalid', 'expected a type of OpenTofu');
  const [kind, of]: readonly unknown[] = raw;
  if (kind === 'list' || kind === 'set' || kind === 'map') return [kind, typeOf(of)];
  if (kind === 'tuple' && Array.isArray(of)) return ['tuple', of.map(typeOf)];
  if (kind === 'object' && isRecord(of)) return ['object', mapped(of, (each) => typeOf(each))];
  throw new KmsError('invalid', 'expected a type of OpenTofu');
}

function valueFrom(raw: unknown, type: Type, readTyped: ReadTyped): Value {
  // An unknown value may carry refinements, which nothing here needs.
  if (raw instanceof ExtData) return unknown;
  if (raw === null || raw === undefined) return null;
  const inner = (each: unknown, of: Type): Value => valueFrom(each, of, readTyped);
  if (typeof type === 'string') {
    const scalar = scalarOf(raw, type, readTyped);
    if (scalar !== undefined) return scalar;
  } else if (type[0] === 'object') {
    const [, attributes] = type;
    if (isRecord(raw)) return mapped(attributes, (of, name) => inner(Object.hasOwn(raw, name) ? raw[name] : null, of));
  } else if (type[0] === 'map') {
    const [, of] = type;
    if (isRecord(raw)) return mapped(raw, (each) => inner(each, of));
  } else if (type[0] === 'tuple') {
    const [, items] = type;
    if (Array.isArray(raw) && raw.length === items.length) return items.map((of, n) => inner(raw[n], of));
  } else {
    const [, of] = type;
    if (Array.isArray(raw)) return raw.map((each) => inner(each, of));
  }
  throw new KmsError('invalid', `expected ${typeof type === 'string' ? type : type[0]}, got ${typeof raw}`);
}

/** A value of a simple type, or of any type together with its own; undefined if it is none. */
function scalarOf(raw: unknown, type: Type & string, readTyped: ReadTyped): Value | undefined {
  if (type === 'string') return typeof raw === 'string' ? raw : undefined;
  if (type === 'bool') return typeof raw === 'boolean' ? raw : undefined;
  if (type === 'dynamic') {
    const [own, value] = readTyped(raw) ?? [];
    return own === undefined ? undefined : new Typed(own, valueFrom(value, own, readTyped));
  }
  // Numbers that are no doubles are written as text.
  const number = typeof raw === 'string' && raw !== '' ? Number(raw) : raw;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

function isRecord(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}

/** Names are ordinary keys, `__proto__` too. */
export function mapped<T, R>(record: Readonly<Record<string, T>>, change: (value: T, name: string) => R) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
}

/** Missing attributes of objects are written as null. */
export function writeValue(value: Value, type: Type): Uint8Array {
  return encode(rawOf(value, type));
}

function rawOf(value: Value, type: Type): unknown {
  if (value === unknown) return new ExtData(0, Uint8Array.of(0));
  if (value === null) return null;
  if (value instanceof Typed) return [Buffer.from(JSON.stringify(value.type)), rawOf(value.value, value.type)];
  if (typeof type === 'string') return value;
  if (isList(value)) {
    return value.map((each, n) => rawOf(each, type[0] === 'tuple' ? (type[1][n] ?? 'dynamic') : elementOf(type)));
  }
  if (type[0] !== 'object') return mapped(Object(value), (each: Value) => rawOf(each, elementOf(type)));
  const given: ObjectValue = Object(value);
  return mapped(type[1], (of, name) => rawOf(given[name] ?? null, of));
}

function elementOf(type: Exclude<Type, string>): Type {
  if (type[0] === 'object' || type[0] === 'tuple') throw new KmsError('internal', 'a value does not fit its type');
  return type[1];
}

function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** The value as the object that it is. */
export function objectOf(value: Value): ObjectValue {
  if (isRecord(value)) return Object(value);
  throw new KmsError('invalid', 'expected an object of OpenTofu');
}

/** Whether the value, or a part of it, is unknown. */
export function hasUnknown(value: Value): boolean {
  if (value === unknown) return true;
  if (value instanceof Typed) return hasUnknown(value.value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some(hasUnknown);
}

/** The value as JSON has it. Throws `internal` if a part is unknown. */
export function jsonOf(value: Value): unknown {
  if (value === unknown) throw new KmsError('internal', 'a value is not known yet');
  if (value instanceof Typed) return jsonOf(value.value);
  if (isList(value)) return value.map(jsonOf);
  if (typeof value !== 'object' || value === null) return value;
  return mapped(objectOf(value), jsonOf);
}

/** JSON as a value of this type; what does not fit it is null. */
export function fromPlain(json: unknown, type: Type): Value {
  if (json === null || json === undefined) return null;
  if (type === 'dynamic') {
    const inferred = inferredType(json);
    return new Typed(inferred, fromPlain(json, inferred));
  }
  if (type === 'string') return typeof json === 'string' ? json : null;
  if (type === 'number') return typeof json === 'number' ? json : null;
  if (type === 'bool') return typeof json === 'boolean' ? json : null;
  if (type[0] === 'tuple') return Array.isArray(json) ? type[1].map((of, n) => fromPlain(json[n], of)) : null;
  if (type[0] === 'list' || type[0] === 'set') {
    // The API writes some lists of one as the one.
    return (Array.isArray(json) ? json : [json]).map((each) => fromPlain(each, type[1]));
  }
  if (!isRecord(json)) return null;
  if (type[0] === 'map') return mapped(json, (each) => fromPlain(each, type[1]));
  return type[0] === 'object' ? mapped(type[1], (of, name) => fromPlain(json[name], of)) : null;
}

/** The type that OpenTofu itself gives to a literal. */
function inferredType(json: unknown): Type {
  if (typeof json === 'string') return 'string';
  if (typeof json === 'number') return 'number';
  if (typeof json === 'boolean') return 'bool';
  if (Array.isArray(json)) return ['tuple', json.map(inferredType)];
  return isRecord(json) ? ['object', mapped(json, inferredType)] : 'dynamic';
}
