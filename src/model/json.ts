// JSON objects: how they are recognized, merged, compared, and searched. `__proto__` and the like are ordinary keys:
// only own keys count, and objects are built from entries, never by assignment.

/** Soft limit of a page's JSON in bytes: a page that reaches it ends early and has a next cursor. */
export const longestPage = 4 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether objects and lists nest no deeper than `levels`, however deep they do. */
export function nestsWithin(value: unknown, levels: number): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; depth <= levels; depth++) {
    const holders = level.filter((each) => typeof each === 'object' && each !== null);
    if (holders.length === 0) return true;
    level = holders.flatMap((each) => Object.values(each as object));
  }
  return false;
}

/** A whole number from 0 on that JavaScript holds exactly. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Exactly so many hexadecimal digits, in lower case. */
export function isHex(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value);
}

/** `base` with the entries of `change` set; nested objects are merged the same way. */
function mergeDeep(base: JsonObject, change: JsonObject): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(change)) {
    const old = merged.get(name);
    merged.set(name, isJsonObject(old) && isJsonObject(value) ? mergeDeep(old, value) : value);
  }
  return Object.fromEntries(merged);
}

/** `base` without the keys of `names`, whatever their values. */
function withoutEntries(base: JsonObject, names: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(base).filter(([name]) => !Object.hasOwn(names, name)));
}

/** Whether two JSON values are equal; the order of keys does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
  );
}

/**
 * Whether a value contains `wanted`: an object contains every object whose entries it contains, recursively; arrays and
 * scalars are compared whole. `wanted` is compiled once, so that checking many values is cheap.
 */
export function containing(wanted: unknown): (value: unknown) => boolean {
  if (!isJsonObject(wanted)) return (value) => sameJson(value, wanted);
  const parts = Object.entries(wanted).map(([key, part]) => ({ key, isIn: containing(part) }));
  return (value) =>
    isJsonObject(value) && parts.every(({ key, isIn }) => Object.hasOwn(value, key) && isIn(value[key]));
}

/** How a request changes a stored object: delete the named entries, merge the given ones, or replace all. */
export type ChangeOp = 'delete' | 'merge' | 'replace';

/** `base` after a change; a merge is deep. */
export function changedObject(op: ChangeOp, base: JsonObject, given: JsonObject): JsonObject {
  if (op === 'replace') return given;
  return op === 'merge' ? mergeDeep(base, given) : withoutEntries(base, given);
}
