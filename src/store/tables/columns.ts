// JSON in a text column. Objects are parsed and serialized here; reading returns exactly what was written, even
// `__proto__`.
import { KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../../model/json.ts';

/** The most common value of a free-form column, which skips the parser. */
const empty = '{}';

export function toJson(value: JsonObject | readonly unknown[]): string {
  return JSON.stringify(value);
}

export function objectOf(text: string): JsonObject {
  const value = text === empty ? {} : jsonOf(text);
  if (isJsonObject(value)) return value;
  throw notColumn('an object');
}

/**
 * SQL condition: whether the column `flags` holds `*`. Spelled as in the indexes of the holders, so that SQLite uses
 * them.
 */
export const holdsAll = `json_extract(flags, '$."*"') = 1`;

/** Reads a column that holds an array of texts. */
export function textsOf(text: string): string[] {
  const value = text === '[]' ? [] : jsonOf(text);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  throw notColumn('texts');
}

function notColumn(what: string): KmsError {
  return new KmsError('corrupt', `expected ${what} in a column of the database, found something else`, {
    hint: 'nothing was changed; no version of kms writes this: restore from a backup',
  });
}
