// Comparison of an object as a file describes it with the one that the appliance has: only fields that the file names
// count, each in the form in which the appliance shows it.
import { isKnownFlag, likelyFlag } from '../../model/flags.ts';
import { isJsonObject, type JsonObject, sameJson } from '../../model/json.ts';
import type { Difference, Found, Problem, Wanted } from './kind.ts';

/** Fields of `wanted` that are other in `found`, both in canonical form. */
export function differing(wanted: JsonObject, found: JsonObject): Difference[] {
  return Object.entries(wanted)
    .filter(([field, value]) => !sameJson(value, found[field]))
    .map(([field, after]) => ({ field, before: found[field], after }));
}

/** The same for an object in a field, of which the file names some entries, however deep. */
export function differingWithin(field: string, wanted: unknown, found: unknown): Difference[] {
  if (!isJsonObject(wanted)) return sameJson(wanted, found) ? [] : [{ field, before: found, after: wanted }];
  const entries = isJsonObject(found) ? found : {};
  return Object.entries(wanted).flatMap(([name, value]) => differingWithin(`${field}.${name}`, value, entries[name]));
}

/** Flags in lower case, without those that grant nothing. */
export function plainFlags(flags: unknown): JsonObject {
  const names = Object.entries(Object(flags)).flatMap(([name, granted]) =>
    granted === true ? [name.toLowerCase()] : [],
  );
  return Object.fromEntries(names.sort().map((name) => [name, true]));
}

/** Names of the flags that grant something. */
export function grantedIn(flags: unknown): readonly string[] {
  return Object.keys(plainFlags(flags));
}

/**
 * Flags outside the table, which grant nothing here; one that the object has already is no slip of the pen. `accepting`
 * is the option that takes them nevertheless.
 */
export function oddFlags({ fields }: Wanted, found: Found | undefined, accepting: string): readonly Problem[] {
  const held = new Set(grantedIn(found?.fields.flags));
  return Object.keys(Object(fields.flags))
    .filter((flag) => !isKnownFlag(flag) && !held.has(flag.toLowerCase()))
    .map((flag) => {
      const near = likelyFlag(flag);
      const question =
        near === undefined ? `${accepting} accepts it for a program of your own` : `did you mean ${near}?`;
      return { path: ['flags', flag], message: `grants nothing here; ${question}` };
    });
}

/** Fields without those that have these defaults. */
export function withoutDefaults(fields: JsonObject, defaults: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => !Object.hasOwn(defaults, name) || !sameJson(value, defaults[name]),
    ),
  );
}

/** Fields that the object has and that are not undefined. */
export function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // Cast: undefined entries are gone.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
