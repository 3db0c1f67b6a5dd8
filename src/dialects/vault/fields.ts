// Body fields as Vault's clients send them: null for absent, numbers and booleans possibly as text, and durations in
// Go's notation.
import type { KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { mostItems } from '../../model/key-types.ts';
import { invalid } from './answers.ts';

export function isAbsent(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

export function textOf(given: JsonObject, name: string): string | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw wrongKind(name, 'a string');
}

export function numberOf(given: JsonObject, name: string): number | undefined {
  const value = given[name];
  if (isAbsent(value)) return undefined;
  const number = typeof value === 'string' && /^-?[0-9]{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
  throw wrongKind(name, 'an integer');
}

/** `negative` is the message for a number below 0. */
export function countOf(given: JsonObject, name: string, negative: string): number | undefined {
  const number = numberOf(given, name);
  if (number !== undefined && number < 0) throw invalid(negative);
  return number;
}

export function booleanOf(given: JsonObject, name: string): boolean | undefined {
  const value = given[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string' || typeof value === 'number') {
    const word = String(value).toLowerCase();
    if (word === 'true' || word === '1') return true;
    if (word === 'false' || word === '0') return false;
  }
  throw wrongKind(name, 'true or false');
}

function wrongKind(name: string, expected: string): KmsError {
  return invalid(`error converting input for field "${name}": expected ${expected}`);
}

/** The rotation period: seconds, or a duration in Go's notation; 0 means never. */
export function rotationOf(given: JsonObject): { rotateAfter?: number | null } {
  const value = given.auto_rotate_period;
  if (isAbsent(value)) return {};
  const seconds = typeof value === 'string' || typeof value === 'number' ? secondsOf(String(value)) : undefined;
  if (seconds === 0) return { rotateAfter: null };
  if (seconds === undefined || seconds < 3600) {
    throw invalid('auto rotate period must be 0 to disable or at least an hour');
  }
  if (Number.isSafeInteger(seconds)) return { rotateAfter: seconds };
  throw invalid('auto rotate period is longer than any that can be kept');
}

const units: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1 };

/** Characters; Go itself never writes more than 25. */
const longestPeriod = 100;

function secondsOf(text: string): number | undefined {
  if (/^[0-9]{1,10}$/.test(text)) return Number(text);
  if (text.length > longestPeriod || !/^(?:[0-9]{1,9}[dhms])+$/.test(text)) return undefined;
  return [...text.matchAll(/([0-9]+)([dhms])/g)].reduce(
    (sum, [, digits, unit = '']) => sum + Number(digits) * (units[unit] ?? 0),
    0,
  );
}

/** The items of a batch; undefined if the request is not one. A batch that is too long is refused unread. */
export function batchOf({ batch_input: batch }: JsonObject): readonly unknown[] | undefined {
  if (batch === undefined || batch === null) return undefined;
  if (!Array.isArray(batch)) throw invalid('error parsing batch input: expected an array');
  if (batch.length <= mostItems) return batch;
  throw invalid(`error parsing batch input: expected at most ${mostItems} items, got ${batch.length}`);
}

/** The client's own mark on an item of a batch. */
export function referenceOf(item: unknown): string {
  return isJsonObject(item) && typeof item.reference === 'string' ? item.reference : '';
}

/** A list of words, or a text with commas between them. */
export function wordsOf(given: JsonObject, name: string): readonly string[] | undefined {
  const value = given[name];
  if (isAbsent(value)) return undefined;
  const words: readonly unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [1];
  return words.map((word) => {
    if (typeof word === 'string') return word.trim();
    throw wrongKind(name, 'a list of strings');
  });
}

/** Fields that both single requests and batch items may have; `own` names the text fields. */
export function itemOf(given: unknown, own: readonly string[]): object {
  if (!isJsonObject(given)) throw invalid('error parsing batch input: expected objects');
  const item: Record<string, unknown> = {};
  for (const name of own) item[name] = textOf(given, name);
  return {
    ...item,
    associatedData: textOf(given, 'associated_data'),
    context: textOf(given, 'context'),
    keyVersion: madeVersionOf(given),
  };
}

/** The key version to use. */
export function madeVersionOf(given: JsonObject): number | undefined {
  return countOf(given, 'key_version', 'requested version for encryption is negative');
}
