// JSON objects as every room treats them: what one is, how two are merged, compared, and searched for one in the other.
// `__proto__` and the like are keys like any other: only own keys count, and objects are made from entries, never by
// assignment.

/**
 * Bytes of a page's items as JSON. To one that is as long no more are added: it holds fewer than were asked for, and
 * the next one goes on.
 */
export const longestPage = 4 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `base` with the entries of `change` set, objects within objects merged in the same way. */
function mergeDeep(base: JsonObject, change: JsonObject): JsonObject {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(change)) {
    const old = merged.get(name);
    merged.set(name, isJsonObject(old) && isJsonObject(value) ? mergeDeep(old, value) : value);
  }
  return Object.fromEntries(merged);
}

/** `base` without the entries that `names` has, whatever their values. */
function withoutEntries(base: JsonObject, names: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(base).filter(([name]) => !Object.hasOwn(names, name)));
}

/** Whether two JSON values are the same; the order of an object's keys does not count. */
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
 * scalars compare whole. What is wanted is taken apart once, so that one without it costs next to nothing.
 */
export function containing(wanted: unknown): (value: unknown) => boolean {
  if (!isJsonObject(wanted)) return (value) => sameJson(value, wanted);
  const parts = Object.entries(wanted).map(([key, part]) => ({ key, isIn: containing(part) }));
  return (value) =>
    isJsonObject(value) && parts.every(({ key, isIn }) => Object.hasOwn(value, key) && isIn(value[key]));
}

/**
 * How a request changes an object that is kept: takes named entries away, sets what is given, or puts it in place of
 * all.
 */
export type ChangeOp = 'delete' | 'merge' | 'replace';

/** `base` after a change; a merge goes into objects within objects. */
export function changedObject(op: ChangeOp, base: JsonObject, given: JsonObject): JsonObject {
  if (op === 'replace') return given;
  return op === 'merge' ? mergeDeep(base, given) : withoutEntries(base, given);
}
