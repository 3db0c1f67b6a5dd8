// FlagDraft holds permission flags while they are edited: choices from the table by resource, rows for rings, and names
// outside the table. It yields the flat object that the API takes. Drafts are immutable; each edit returns a new one.
import {
  type FlagEntry,
  flagTable,
  isKnownFlag,
  likelyFlag,
  maxFlagLength,
  ringPlaceholder,
} from '../../model/flags.ts';
import { isRingName } from '../../model/names.ts';
import { nearest } from '../../model/nearest.ts';

type FlagValues = Readonly<Record<string, boolean>>;

/** The operations granted on one ring. */
export interface RingRow {
  readonly resource: string;
  /** A ring's name, or `*` for every ring. */
  readonly ring: string;
  readonly operations: readonly string[];
}

/** A flag by name: one that a program defines for itself, or one of the table that is not granted. */
export interface OtherRow {
  readonly name: string;
  readonly granted: boolean;
}

export interface FlagDraft {
  /** Flags of the table that name no ring: `*`, `keyring.create`, `user.*`. */
  readonly plain: readonly string[];
  readonly rings: readonly RingRow[];
  readonly others: readonly OtherRow[];
}

export const emptyDraft: FlagDraft = { plain: [], rings: [], others: [] };

export function draftOf(flags: Readonly<Record<string, unknown>>): FlagDraft {
  const plain: string[] = [];
  const rings = new Map<string, { resource: string; ring: string; operations: string[] }>();
  const others: OtherRow[] = [];
  for (const [name, value] of Object.entries(flags)) {
    const lower = name.toLowerCase();
    if (value !== true || !isKnownFlag(lower)) {
      others.push({ name, granted: value === true });
      continue;
    }
    const first = lower.indexOf('.');
    const last = lower.lastIndexOf('.');
    if (first === last) {
      if (!plain.includes(lower)) plain.push(lower);
      continue;
    }
    const resource = lower.slice(0, first);
    const ring = lower.slice(first + 1, last);
    const row = rings.get(`${resource}.${ring}`) ?? { resource, ring, operations: [] };
    rings.set(`${resource}.${ring}`, row);
    const operation = lower.slice(last + 1);
    if (!row.operations.includes(operation)) row.operations.push(operation);
  }
  return { plain, rings: [...rings.values()], others };
}

export function flagsOf({ plain, rings, others }: FlagDraft): FlagValues {
  // A map first, since a typed name may be `__proto__`.
  const flags = new Map<string, boolean>();
  for (const { name, granted } of others) if (name !== '') flags.set(name, granted);
  for (const name of plain) flags.set(name, true);
  for (const { resource, ring, operations } of rings) {
    for (const operation of operations) flags.set(`${resource}.${ring.trim().toLowerCase()}.${operation}`, true);
  }
  return Object.fromEntries(flags);
}

export function withPlain(draft: FlagDraft, flag: string, granted: boolean): FlagDraft {
  const rest = draft.plain.filter((each) => each !== flag);
  return { ...draft, plain: granted ? [...rest, flag] : rest };
}

export function withRing(draft: FlagDraft, index: number, row: RingRow | undefined): FlagDraft {
  return { ...draft, rings: replaced(draft.rings, index, row) };
}

export function withOther(draft: FlagDraft, index: number, row: OtherRow | undefined): FlagDraft {
  return { ...draft, others: replaced(draft.others, index, row) };
}

export function withOperation(row: RingRow, operation: string, granted: boolean): RingRow {
  const rest = row.operations.filter((each) => each !== operation);
  return { ...row, operations: granted ? [...rest, operation] : rest };
}

/** Replaces the row, removes it if `row` is undefined, or appends it if `index` is past the end. */
function replaced<T>(rows: readonly T[], index: number, row: T | undefined): T[] {
  return row === undefined ? rows.toSpliced(index, 1) : rows.toSpliced(index, 1, row);
}

/** The noun for the rings of a resource. */
export function ringNoun(resource: string): string {
  return resource === 'key' ? 'managed key' : 'keyring';
}

/** Why a row cannot be sent; undefined if it can. */
export function ringProblem({ resource, ring }: RingRow): string | undefined {
  const name = ring.trim();
  const noun = ringNoun(resource);
  if (name === '') return `Type the ${noun}’s name, or choose all ${noun}s.`;
  if (name === wildcard || isRingName(name)) return undefined;
  return [
    `A ${noun}’s name has letters, digits, dots, dashes and underscores, starts with a letter or digit,`,
    'and has at most 128 characters.',
  ].join(' ');
}

/** Number of names from which on a list of them may not be whole. */
const mostKnown = 500;

/** Names of rings by the resource of their flags; a resource is missing if the names of its rings are not known. */
export type NamesByResource = ReadonlyMap<string, readonly string[]>;

/** A warning about a ring that does not exist, with the name that was probably meant. */
export function unknownRing(row: RingRow, names: NamesByResource): string | undefined {
  const ring = row.ring.trim().toLowerCase();
  const known = names.get(row.resource);
  if (!known || known.length >= mostKnown || known.includes(ring)) return undefined;
  if (ring === wildcard || ringProblem(row) !== undefined) return undefined;
  const meant = nearest(ring, known);
  const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `There is no ${ringNoun(row.resource)} called ${ring} yet: these flags count once there is one.${question}`;
}

/** Warnings about rings that do not exist, also about those named by flags that are not granted through rows. */
export function unknownRings(flags: Readonly<Record<string, unknown>>, names: NamesByResource): string[] {
  const warnings = draftOf(flags).rings.map((row) => unknownRing(row, names));
  return warnings.filter((warning) => warning !== undefined);
}

export function otherProblem({ name }: OtherRow): string | undefined {
  if (name === '') return 'Type the name, or remove the row.';
  if (!name.isWellFormed()) return 'This name has characters that cannot be stored.';
  return name.length > maxFlagLength ? `A flag has at most ${maxFlagLength} characters.` : undefined;
}

/** A warning about a row that can be sent all the same. */
export function otherWarning({ name, granted }: OtherRow, names: NamesByResource = new Map()): string | undefined {
  if (otherProblem({ name, granted }) !== undefined) return undefined;
  if (!isKnownFlag(name)) {
    const meant = likelyFlag(name);
    const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
    return `Not one of this service’s flags: it is kept, and means something only to your own programs.${question}`;
  }
  return granted ? unknownRings({ [name]: true }, names)[0] : 'Kept as not granted: it allows nothing.';
}

/** All problems of the draft; nothing is sent while there are any. */
export function draftProblems({ rings, others }: FlagDraft): string[] {
  const ofRings = rings.filter((row) => row.operations.length > 0).map(ringProblem);
  return [...ofRings, ...others.map(otherProblem)].filter((problem) => problem !== undefined);
}

/** Description of what a flag grants; undefined for unknown flags. */
export function grantOf(flag: string): string | undefined {
  const lower = flag.toLowerCase();
  if (lower === wildcard) return 'everything';
  if (!isKnownFlag(lower)) return undefined;
  const first = lower.indexOf('.');
  const last = lower.lastIndexOf('.');
  const group = flagGroups.find(({ resource }) => resource === lower.slice(0, first));
  if (!group) return undefined;
  const operation = lower.slice(last + 1);
  if (first === last) {
    if (operation === wildcard) return `everything about ${group.title}`;
    return group.plain.find(({ name }) => name === operation)?.grants;
  }
  const ring = lower.slice(first + 1, last);
  const thing = group.resource === 'key' ? 'managed key' : 'keyring';
  const where = ring === wildcard ? `every ${thing}` : `the ${thing} ${ring}`;
  if (operation === wildcard) return `every operation on ${where}`;
  const grants = group.ofRing.find(({ name }) => name === operation)?.grants;
  return grants?.replace(/the (?:(?:asym )?keyring|managed key)/, where);
}

export interface FlagOperation {
  /** Last part of the flag's name; `*` for all operations. */
  readonly name: string;
  readonly grants: string;
}

/** The flags of one resource. */
export interface FlagGroup {
  readonly resource: string;
  readonly title: string;
  /** Operations that are not about a single ring. */
  readonly plain: readonly FlagOperation[];
  /** Operations on one ring; empty if the resource has no rings. */
  readonly ofRing: readonly FlagOperation[];
}

const titles: Readonly<Record<string, string>> = {
  keyring: 'Keyrings',
  asym: 'Asymmetric keyrings',
  key: 'Managed keys',
  kmip: 'Objects of KMIP',
  tang: 'Tang key pairs',
  asset: 'Assets',
  user: 'Users',
  account: 'Accounts',
  apikey: 'API keys',
  activity: 'Activity',
  approval: 'Approvals',
  system: 'The appliance',
};

/** Stands for every operation, or every ring. */
export const wildcard = '*';

export const flagGroups: readonly FlagGroup[] = groupsOf(flagTable);

function groupsOf(table: readonly FlagEntry[]): FlagGroup[] {
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

/** The granted flags that concern the ring, in lower case and sorted. */
export function ringFlags(flags: Readonly<Record<string, unknown>>, ring: string): string[] {
  return Object.entries(flags)
    .filter(([, granted]) => granted === true)
    .map(([flag]) => flag.toLowerCase())
    .filter((flag) => flag === '*' || flag === 'keyring.*' || isOf(flag, ring) || isOf(flag, '*'))
    .sort();
}

/** Whether one of the flags names the ring itself; such a key prevents the ring's deletion. */
export function namesRing(flags: readonly string[], ring: string): boolean {
  return flags.some((flag) => isOf(flag, ring));
}

function isOf(flag: string, ring: string): boolean {
  const start = `keyring.${ring}.`;
  return flag.startsWith(start) && flag.length > start.length && !flag.slice(start.length).includes('.');
}
