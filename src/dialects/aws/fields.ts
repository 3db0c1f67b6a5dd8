// Checks of a request's fields by the table of its operation. Unknown fields are ignored, as AWS does.
import { fromBase64 } from '../../crypto/bytes.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { failure } from './errors.ts';
import type { FieldRule } from './operation.ts';

/** Throws `SerializationException` for a wrong type, `ValidationException` for a value out of bounds or missing. */
export function checkFields(given: JsonObject, rules: Readonly<Record<string, FieldRule>>): void {
  for (const [name, rule] of Object.entries(rules)) {
    const [, kind = '', must, least, most] = /^(\w+)(!?)(?: (\d+)-(\d+))?$/.exec(rule) ?? [];
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === null) {
      if (must === '!') throw invalid(name, 'failed to satisfy constraint: Member must not be null');
      continue;
    }
    const size = sizeOf(kind, value);
    if (size === undefined) throw failure('SerializationException');
    if (least === undefined) continue;
    if (size < Number(least)) throw invalid(name, `failed to satisfy constraint: at least ${least}`);
    if (size > Number(most)) throw invalid(name, `failed to satisfy constraint: at most ${most}`);
  }
}

function invalid(name: string, problem: string): Error {
  const field = name.charAt(0).toLowerCase() + name.slice(1);
  return failure('ValidationException', `1 validation error detected: Value at '${field}' ${problem}`);
}

/** The number that the bounds are of; undefined for a value of another type. */
function sizeOf(kind: string, value: unknown): number | undefined {
  switch (kind) {
    case 'text':
      return typeof value === 'string' ? value.length : undefined;
    case 'blob':
      return typeof value === 'string' ? fromBase64(value)?.length : undefined;
    case 'number':
      return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
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

/** A checked text; undefined if it is absent. */
export function textOf(given: JsonObject, name: string): string | undefined {
  const value = given[name];
  return typeof value === 'string' ? value : undefined;
}

export function numberOf(given: JsonObject, name: string): number | undefined {
  const value = given[name];
  return typeof value === 'number' ? value : undefined;
}

/** A text that is one of some; the first if it is absent and there is a usual one. */
export function wordOf<W extends string>(given: JsonObject, name: string, words: readonly W[], usual?: W): W {
  const value = textOf(given, name) ?? usual;
  const word = words.find((each) => each === value);
  if (word !== undefined) return word;
  throw invalid(name, `failed to satisfy constraint: Member must satisfy enum value set: [${words.join(', ')}]`);
}
