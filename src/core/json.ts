// Free-form JSON objects as operations take and answer them. `__proto__` and the like are keys like any other: objects are
// made from entries, never by assignment.

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `base` with the entries of `change` set, objects within objects merged in the same way. */
export function mergeDeep(base: JsonObject, change: JsonObject): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(change)) {
    const old = merged.get(name);
    merged.set(name, isJsonObject(old) && isJsonObject(value) ? mergeDeep(old, value) : value);
  }
  return Object.fromEntries(merged);
}

/** `base` without the entries that `names` has, whatever their values. */
export function withoutEntries(base: JsonObject, names: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(base).filter(([name]) => !Object.hasOwn(names, name)));
}
