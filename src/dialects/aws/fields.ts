// Checks of a request's fields by the rules of field-table.ts. Unknown fields are ignored, as AWS does.
import { fromBase64 } from '../../crypto/bytes.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { failure } from './errors.ts';

/** Throws `SerializationException` for a wrong type, `ValidationException` for a value out of bounds or missing. */
export function checkFields(given: JsonObject, rules: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(rules)) checkField(name, fieldOf(given, name), ruleOf(text));
}

interface Rule {
  readonly kind: string;
  readonly isNeeded: boolean;
  readonly words: readonly string[] | undefined;
  readonly bounds: readonly [least: number, most: number] | undefined;
}

const rules = new Map<string, Rule>();

function ruleOf(text: string): Rule {
  const known = rules.get(text);
  if (known) return known;
  const [name = '', rest] = text.split(' ');
  const isNeeded = name.endsWith('!');
  const kind = isNeeded ? name.slice(0, -1) : name;
  const [least = 0, most = 0] = kind === 'word' ? [] : (rest?.split('-').map(Number) ?? []);
  const isWord = kind === 'word';
  const made: Rule = {
    kind,
    isNeeded,
    words: isWord ? rest?.split('|') : undefined,
    bounds: isWord || rest === undefined ? undefined : [least, most],
  };
  rules.set(text, made);
  return made;
}

function checkField(name: string, value: unknown, { kind, isNeeded, words, bounds }: Rule): void {
  if (value === undefined || value === null) {
    if (isNeeded) throw invalid(name, 'Member must not be null');
    return;
  }
  const size = sizeOf(kind, value);
  if (size === undefined) throw failure('SerializationException');
  if (words && !words.some((word) => word === value)) {
    throw invalid(name, `Member must satisfy enum value set: [${words.join(', ')}]`);
  }
  if (!bounds) return;
  const what = kind === 'number' ? 'value' : 'length';
  const [least, most] = bounds;
  if (size < least) throw invalid(name, `Member must have ${what} greater than or equal to ${least}`);
  if (size > most) throw invalid(name, `Member must have ${what} less than or equal to ${most}`);
}

function invalid(name: string, problem: string): Error {
  const field = name.charAt(0).toLowerCase() + name.slice(1);
  const text = `1 validation error detected: Value at '${field}' failed to satisfy constraint: ${problem}`;
  return failure('ValidationException', text);
}

/** The number that the bounds are of; undefined for a value of another type. */
function sizeOf(kind: string, value: unknown): number | undefined {
  switch (kind) {
    case 'text':
    case 'word':
      return typeof value === 'string' ? value.length : undefined;
    case 'blob':
      return typeof value === 'string' ? fromBase64(value)?.length : undefined;
    case 'number':
      return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
    case 'time':
      return typeof value === 'number' ? 0 : undefined;
    case 'flag':
      return typeof value === 'boolean' ? 0 : undefined;
    case 'list':
      return Array.isArray(value) ? value.length : undefined;
    case 'map':
      return isJsonObject(value) ? Object.keys(value).length : undefined;
    default:
      return undefined;
  }
}

function fieldOf(given: JsonObject, name: string): unknown {
  return Object.hasOwn(given, name) ? given[name] : undefined;
}

/** A checked text; undefined if it is absent. */
export function textOf(given: JsonObject, name: string): string | undefined {
  const value = fieldOf(given, name);
  return typeof value === 'string' ? value : undefined;
}

export function numberOf(given: JsonObject, name: string): number | undefined {
  const value = fieldOf(given, name);
  return typeof value === 'number' ? value : undefined;
}

export function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Seconds, as all times in answers, of epoch milliseconds or RFC 3339. */
export function secondsOf(time: unknown): number {
  return (typeof time === 'number' ? time : epochTimeOf(String(time))) / 1000;
}

/** One page of a list that is here as a whole. Throws `InvalidMarkerException`. */
export function pageOf<Item>(given: JsonObject, all: readonly Item[], most: number) {
  const marker = textOf(given, 'Marker');
  const start = marker === undefined ? 0 : Number(/^from-(\d{1,6})$/.exec(marker)?.[1] ?? Number.NaN);
  if (Number.isNaN(start) || start > all.length) throw failure('InvalidMarkerException');
  const end = start + Math.min(numberOf(given, 'Limit') ?? most, most);
  const more = end < all.length ? { Truncated: true, NextMarker: `from-${end}` } : { Truncated: false };
  return { items: all.slice(start, end), more };
}
