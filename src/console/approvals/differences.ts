// Differences between an object before and after an operation, field by field. Pure.
import { isJsonObject, sameJson } from '../../model/json.ts';

export interface Difference {
  /** Field's name, with those of the objects around it: `props.desk`. */
  readonly field: string;
  /** Undefined if the field is not there. */
  readonly before: unknown;
  readonly after: unknown;
}

type Thing = Readonly<Record<string, unknown>>;

/** Fields that differ, in the order of their names' appearance; objects are looked into. */
export function differencesBetween(before: Thing, after: Thing, within = ''): Difference[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name): Difference[] => {
    const [was, is] = [own(before, name), own(after, name)];
    const field = `${within}${name}`;
    if (sameJson(was, is)) return [];
    if (isJsonObject(was) && isJsonObject(is)) return differencesBetween(was, is, `${field}.`);
    return [{ field, before: was, after: is }];
  });
}

/** Those of the fields that change which no difference shows. */
export function unseenChanges(changed: readonly string[], differences: readonly Difference[]): string[] {
  return changed.filter((name) => !differences.some(({ field }) => field === name || field.startsWith(`${name}.`)));
}

function own(thing: Thing, name: string): unknown {
  return Object.hasOwn(thing, name) ? thing[name] : undefined;
}
