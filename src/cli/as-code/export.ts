// Objects of an appliance in the form of files: applying them to it changes nothing. Secrets and whatever the appliance
// itself decides are in none of them.
import type { KindName } from '../../api/configuration.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Desk, Found } from './kind.ts';
import { kinds } from './kind-table.ts';
import { isHidden } from './kinds/account.ts';
import { inParallel } from './parallel.ts';

interface Exported {
  readonly objects: readonly JsonObject[];
  /** Sentences about what is left out. */
  readonly notes: readonly string[];
}

/** @param isAsked whether the kinds were named: then each of them must be visible. */
export async function exportedObjects(desk: Desk, names: readonly KindName[], isAsked: boolean): Promise<Exported> {
  const objects: JsonObject[] = [];
  const notes: string[] = [];
  for (const name of names) {
    const kind = kinds[name];
    const counted = (n: number): string => `${n} ${kind.noun[n === 1 ? 0 : 1]}`;
    let list: readonly Found[];
    try {
      list = await desk.list(name);
    } catch (error) {
      if (isAsked || !isHidden(error)) throw error;
      notes.push(`${kind.noun[1]} are left out: ${error.message}`);
      continue;
    }
    const twins = Map.groupBy(list, (found) => kind.nameKey(found.name));
    const whole = list.filter(({ isUnfinished }) => !isUnfinished);
    const half = list.length - whole.length;
    if (half > 0) notes.push(`${counted(half)} that a run has left unfinished left out`);
    // By name: the order in which they were made is another one elsewhere.
    const alone = whole
      .filter((found) => found.name !== '' && twins.get(kind.nameKey(found.name))?.length === 1)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const hidden: string[] = [];
    const details = await inParallel(alone, async (found) => {
      try {
        return (await kind.detail?.(desk, found, 'all')) ?? found;
      } catch (error) {
        if (isAsked || !isHidden(error)) throw error;
        hidden.push(error.message);
        return undefined;
      }
    });
    if (hidden.length > 0) notes.push(`${counted(hidden.length)} left out: ${hidden[0]}`);
    const lacks = Map.groupBy(details, (found) => found && kind.exportLacks?.(found));
    for (const [what, { length }] of lacks) {
      if (what !== undefined) notes.push(`${counted(length)} without ${what}`);
    }
    const left = whole.length - alone.length;
    if (left > 0) notes.push(`${counted(left)} without a name of ${left === 1 ? 'its' : 'their'} own left out`);
    for (const found of details) {
      const fields = found && kind.exported(found);
      if (fields) objects.push({ kind: name, name: found.name, ...fields });
    }
  }
  return { objects, notes };
}

/** One document for each object. */
export async function yamlOf(objects: readonly JsonObject[]): Promise<string> {
  const { stringify } = await import('yaml');
  const options = { version: '1.2', schema: 'core', lineWidth: 0, aliasDuplicateObjects: false } as const;
  return objects.map((object) => stringify(object, options)).join('---\n');
}
