// JSON in a text column. Objects come and go as parsed values; what is read is what was written, `__proto__` and all.
export type JsonObject = Readonly<Record<string, unknown>>;

/** The most common value of a free-form column, spared the parser. */
const empty = '{}';

export function toJson(value: JsonObject | readonly unknown[]): string {
  return JSON.stringify(value);
}

export function objectOf(text: string): JsonObject {
  return text === empty ? {} : JSON.parse(text);
}

/**
 * Of a row with a column `flags`: whether they hold `*`. Written as the indexes of the holders have it, so that they
 * are used.
 */
export const holdsAll = `json_extract(flags, '$."*"') = 1`;

/** A column that holds an array of texts. */
export function textsOf(text: string): string[] {
  return text === '[]' ? [] : JSON.parse(text);
}
