// Permission flags while they are being edited: what is chosen from the table, rows for rings, and names outside the table. What comes out
// is the flat object that the API takes. A draft is never changed; each edit gives a new one.
import { isKnownFlag } from '../../api/flag-table.ts';
import { flagGroups, wildcard } from './groups.ts';

export type FlagValues = Readonly<Record<string, boolean>>;

/** The operations granted on one ring. */
export interface RingRow {
  readonly resource: string;
  /** A ring's name, or `*` for every ring. */
  readonly ring: string;
  readonly operations: readonly string[];
}

/** A name as it stands: one that a program keeps for itself, or one of the table that is not granted. */
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

const longestFlag = 256;
const ringName = /^[a-z0-9][a-z0-9._-]{0,127}$/i;

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
  // A map first: names are whatever people type, `__proto__` too.
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

/** Without the row where there is none to put in its place; behind the last where there was none. */
function replaced<T>(rows: readonly T[], index: number, row: T | undefined): T[] {
  return row === undefined ? rows.toSpliced(index, 1) : rows.toSpliced(index, 1, row);
}

/** What keeps a row from being sent; undefined when nothing does. */
export function ringProblem({ ring }: RingRow): string | undefined {
  const name = ring.trim();
  if (name === '') return "Type the ring's name, or choose all rings.";
  if (name === wildcard || ringName.test(name)) return undefined;
  return 'A ring’s name has letters, digits, dots, dashes and underscores, starts with a letter or digit, and has at most 128 characters.';
}

export function otherProblem({ name }: OtherRow): string | undefined {
  if (name === '') return 'Type the name, or remove the row.';
  if (!name.isWellFormed()) return 'This name has characters that cannot be kept.';
  return name.length > longestFlag ? `A flag has at most ${longestFlag} characters.` : undefined;
}

/** What to know about a row that can be sent all the same. */
export function otherWarning({ name, granted }: OtherRow): string | undefined {
  if (otherProblem({ name, granted }) !== undefined) return undefined;
  if (!isKnownFlag(name))
    return 'Not one of this service’s flags: it is kept, and means something only to programs of your own.';
  return granted ? undefined : 'Kept as not granted: it lets nobody in.';
}

/** Problems of the whole draft: nothing is sent while there is one. */
export function draftProblems({ rings, others }: FlagDraft): string[] {
  const ofRings = rings.filter((row) => row.operations.length > 0).map(ringProblem);
  return [...ofRings, ...others.map(otherProblem)].filter((problem) => problem !== undefined);
}

/** What a set of flags grants, in words: for a list that nobody has to decode. */
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
  const where = ring === wildcard ? 'every ring' : `the ring ${ring}`;
  if (operation === wildcard) return `every operation on ${where}`;
  const grants = group.ofRing.find(({ name }) => name === operation)?.grants;
  return grants?.replace(/the (?:asym )?ring/, where);
}
