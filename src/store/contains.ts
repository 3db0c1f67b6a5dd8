// What "matches on `data`" and "matches on `props`" mean in every search: deep containment of one JSON value in another.

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether two JSON values are the same; the order of an object's keys does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
  );
}

/**
 * Whether `value` contains `wanted`: an object contains every object whose entries it contains, recursively; arrays and
 * scalars compare whole. Only own keys count, so `__proto__` and `constructor` are keys like any other.
 */
export function containsJson(value: unknown, wanted: unknown): boolean {
  if (!isObject(wanted)) return sameJson(value, wanted);
  if (!isObject(value)) return false;
  return Object.keys(wanted).every((key) => Object.hasOwn(value, key) && containsJson(value[key], wanted[key]));
}
