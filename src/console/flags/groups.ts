// The table of flags as people choose from it: by resource, with the operations on one ring apart from those that concern none.
import { type FlagEntry, flagTable } from '../../api/flag-table.ts';

export interface FlagOperation {
  /** What the flag's name ends with; `*` for all operations. */
  readonly name: string;
  readonly grants: string;
}

export interface FlagGroup {
  readonly resource: string;
  readonly title: string;
  /** Operations that concern no one ring. */
  readonly plain: readonly FlagOperation[];
  /** Operations on one ring; none where the resource has no rings. */
  readonly ofRing: readonly FlagOperation[];
}

const titles: Readonly<Record<string, string>> = {
  keyring: 'KeyRings',
  asym: 'Asym KeyRings',
  asset: 'Assets',
  user: 'Users',
  account: 'Accounts',
  apikey: 'API keys',
  activity: 'Activity',
  system: 'The appliance',
};

const ringPlaceholder = '<ringname>';

/** Stands for every operation, or every ring. */
export const wildcard = '*';

export const flagGroups: readonly FlagGroup[] = groupsOf(flagTable);

export function groupsOf(table: readonly FlagEntry[]): FlagGroup[] {
  const groups = new Map<string, { plain: FlagOperation[]; ofRing: FlagOperation[] }>();
  for (const { flag, grants } of table) {
    const parts = flag.split('.');
    const [resource = '', second, third] = parts;
    if (second === undefined) continue;
    const group = groups.get(resource) ?? { plain: [], ofRing: [] };
    groups.set(resource, group);
    if (second === ringPlaceholder && third !== undefined) group.ofRing.push({ name: third, grants });
    else group.plain.push({ name: second, grants });
  }
  return [...groups].map(([resource, { plain, ofRing }]) => ({
    resource,
    title: titles[resource] ?? resource,
    plain,
    ofRing,
  }));
}
