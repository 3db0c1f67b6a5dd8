// JSON in a text column. Objects are parsed and serialized here; reading returns exactly what was written, even
// `__proto__`.
export type JsonObject = Readonly<Record<string, unknown>>;

/** The most common value of a free-form column, which skips the parser. */
const empty = '{}';

export function toJson(value: JsonObject | readonly unknown[]): string {
  return JSON.stringify(value);
}

export function objectOf(text: string): JsonObject {
  return text === empty ? {} : JSON.parse(text);
}

/**
 * SQL condition: whether the column `flags` holds `*`. Spelled as in the indexes of the holders, so that SQLite uses
 * them.
 */
export const holdsAll = `json_extract(flags, '$."*"') = 1`;

/** Reads a column that holds an array of texts. */
export function textsOf(text: string): string[] {
  return text === '[]' ? [] : JSON.parse(text);
}
