// Plan is the list of changes that make an appliance what files say: what is made, changed and removed, in their order,
// and what stands against it. Making a plan changes nothing.
import type { KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { isKnownFlag, parseFlags } from '../../model/flags.ts';
import type { JsonObject } from '../../model/json.ts';
import { nearest } from '../../model/nearest.ts';
import { oddFlags } from './differing.ts';
import { stateDigest } from './digest.ts';
import { type FileObject, FileProblems } from './files.ts';
import type { Around, Desk, Difference, Found, Kept, Path, Restorable, Wanted } from './kind.ts';
import { kinds } from './kind-table.ts';
import { ifAllowed, isHidden } from './kinds/account.ts';
import { inParallel } from './parallel.ts';
import { type Sight, World, wholeOf } from './world.ts';

type Action = 'create' | 'update' | 'remove';

/** One change. */
export interface Step {
  readonly action: Action;
  readonly kind: KindName;
  readonly name: string;
  /** Id of an object that is removed: others may have its name. */
  readonly id?: string;
  /** The object as the file has it; absent if it is removed. */
  readonly fields?: JsonObject;
  readonly differences: readonly Difference[];
  /** Digest of the object as it is now; absent if there is none. */
  readonly before?: string;
  /** Labels of the secrets that it brings. */
  readonly secrets: readonly string[];
  /** It gets the mark, although it was made otherwise. */
  readonly adopts?: true;
  /** The configuration whose mark it has, if that is another. */
  readonly owner?: string;
  /** It may be there already: the caller cannot see it. */
  readonly isUnseen?: true;
  /** It, or one of its secrets, is there half made: an earlier run was cut off. */
  readonly isUnfinished?: true;
  /** It is there half made, with its secret kept: an earlier run waited for approval, and this goes on. */
  readonly isContinued?: true;
  /** Removals that make room for it, and go first. */
  readonly after?: readonly Pick<Step, 'kind' | 'name'>[];
  /** A deleted one of that name can still be brought back; this makes another. */
  readonly restorable?: Restorable;
  /** Why it cannot be done now. */
  readonly blocked?: string;
  /** Flags that it takes and that the caller does not have. */
  readonly missingFlags: readonly string[];
}

/** A fact about an object of the files, besides what is changed. */
interface ObjectNote {
  readonly kind: KindName;
  readonly name: string;
  readonly text: string;
}

export interface PlannedChanges {
  readonly steps: readonly Step[];
  readonly kept: readonly Kept[];
  /** Absent in plans that earlier versions have saved. */
  readonly notes?: readonly ObjectNote[];
  /** Objects that are as the files say. */
  readonly unchanged: number;
  /** Kinds of which nothing is removed, since the caller cannot list them. */
  readonly unlisted: readonly KindName[];
}

interface PlanOptions {
  /** Whether objects with the mark that no file has are removed. */
  readonly prune: boolean;
  /** Whether objects that were made otherwise get the mark. */
  readonly adopt: boolean;
  /** Whether flags outside the table are accepted. */
  readonly anyFlag: boolean;
  /** Names of the caller's flags. */
  readonly flags: JsonObject;
}

const kindNames = Object.keys(kinds) as KindName[]; // the keys of the table

/** Throws `FilesRefused` for files that cannot be applied. */
export async function makePlan(
  desk: Desk,
  objects: readonly FileObject[],
  options: PlanOptions,
): Promise<PlannedChanges> {
  const world = new World(desk);
  const removable = options.prune ? kindNames.filter((name) => kinds[name].remove) : [];
  const others = objects.flatMap((object) => {
    const { references, considers } = kinds[object.kind];
    return [...references(object).map(({ kind }) => kind), ...(considers?.(object) ?? [])];
  });
  await world.read([...objects.map(({ kind }) => kind), ...others, ...removable]);
  const sights = await world.sights(objects);
  const { removals, kept, leaving } = await removalsIn(desk, world, objects, removable, options);
  const around: Around = {
    leaving: new Set(leaving.map(({ found }) => found.id)),
    kept,
    isLocal: desk.local !== undefined,
    isListed: (kind) => world.isListed(kind),
    found: (kind) => world.all(kind),
    wanted: (kind) => objects.filter((object) => object.kind === kind),
  };
  const problems = new FileProblems();
  const steps: Step[] = [];
  for (const [at, object] of objects.entries()) {
    const sight = sights[at];
    if (!sight) continue;
    try {
      checkObject(object, sight, { world, objects, around, options, problems });
      const { found, hidden } = sight;
      const step = found && hidden !== undefined ? hiddenStep(object, hidden) : stepFor(desk, object, sight, options);
      if (step) steps.push({ ...step, ...roomFor(object, leaving) });
    } catch (error) {
      throw ownFault(object, error);
    }
  }
  problems.refuse();
  const unlisted = removable.filter((name) => !world.isListed(name));
  const gone = await restorables(desk, steps);
  const noted = steps.map((step) => {
    const restorable = step.action === 'create' ? gone.get(keyOf(step)) : undefined;
    return restorable ? { ...step, restorable } : step;
  });
  const changes = await inParallel(noted, (step) => judged(desk, step, sightOf(objects, sights, step)));
  const notes = objects.flatMap((object, at) => notesOn(object, sights[at]));
  return { steps: [...changes, ...removals], kept, notes, unchanged: objects.length - steps.length, unlisted };
}

function notesOn(object: FileObject, { found, hidden }: Partial<Sight> = {}): ObjectNote[] {
  if (!found || hidden !== undefined) return [];
  const { kind, name } = object;
  return (kinds[kind].notes?.(object, found) ?? []).map((text) => ({ kind, name, text }));
}

/** The files were compared, and no answer was read: what goes wrong then is a defect of this program. */
function ownFault(object: FileObject, error: unknown): unknown {
  if (error instanceof KmsError || !(error instanceof Error)) return error;
  const { kind, name } = object;
  return new KmsError('internal', `${object.at([])}: ${kinds[kind].noun[0]} ${name}: ${error.message}`, {
    hint: 'this is a defect of kms: KMS_DEBUG=1 shows where',
    cause: error,
  });
}

function roomFor(object: FileObject, leaving: readonly Leaving[]): Pick<Step, 'after'> {
  const { needsRoomOf } = kinds[object.kind];
  const first = leaving.filter(({ kind, found }) => kind === object.kind && needsRoomOf?.(object, found));
  return first.length === 0 ? {} : { after: first.map(({ kind, found: { name } }) => ({ kind, name })) };
}

function keyOf({ kind, name }: Pick<Step, 'kind' | 'name'>): string {
  return JSON.stringify([kind, kinds[kind].nameKey(name)]);
}

/** Deleted objects of the kinds that are made, as far as the caller may see them. */
async function restorables(desk: Desk, steps: readonly Step[]): Promise<ReadonlyMap<string, Restorable>> {
  const made = new Set(steps.flatMap(({ action, kind }) => (action === 'create' ? [kind] : [])));
  const lists = await Promise.all(
    [...made].map(async (kind) => {
      const list = await ifAllowed(kinds[kind].restorable?.(desk) ?? Promise.resolve([]));
      return list === 'unseen' ? [] : list.map((each) => [keyOf({ kind, name: each.name }), each] as const);
    }),
  );
  return new Map(lists.flat());
}

function sightOf(objects: readonly FileObject[], sights: readonly Sight[], step: Step): Found | undefined {
  return sights[objects.findIndex(({ kind, name }) => kind === step.kind && name === step.name)]?.found;
}

interface Check {
  readonly world: World;
  readonly objects: readonly FileObject[];
  readonly around: Around;
  readonly options: PlanOptions;
  readonly problems: FileProblems;
}

/** Reports what the appliance would refuse for certain. */
function checkObject(object: FileObject, { found, twins, isUnseen, hidden }: Sight, check: Check): void {
  const { around, options, problems } = check;
  const kind = kinds[object.kind];
  const add = (path: Path, message: string): void => problems.add(object.at(path), `${path.join('.')}: ${message}`);
  if (twins.length > 0) {
    const ids = twins.slice(0, 3).map(({ id }) => id);
    add(['name'], `${twins.length} ${kind.noun[1]} have this name (${ids.join(', ')}): give all but one another`);
  }
  const odd = options.anyFlag ? [] : oddFlags(object, found, '--any-flag');
  for (const { path, message } of odd) add(path, message);
  for (const { path, message } of missingReferences(object, check)) add(path, message);
  if (kind.onlyHere !== undefined && !around.isLocal) add(['kind'], kind.onlyHere);
  if (twins.length > 0 || isUnseen || hidden !== undefined) return;
  const differences = found ? kind.differences(object, found) : [];
  for (const { path, message } of kind.problems(object, found, differences, around)) add(path, message);
}

function missingReferences(object: FileObject, { world, objects }: Check) {
  return kinds[object.kind].references(object).flatMap(({ kind: name, name: own, path }) => {
    const kind = kinds[name];
    const key = kind.nameKey(own);
    const isMeant = (each: { readonly name: string }): boolean => kind.nameKey(each.name) === key;
    const inFiles = objects.filter((each) => each.kind === name);
    if (!world.isListed(name) || inFiles.some(isMeant) || world.all(name).some(isMeant)) return [];
    const near = nearest(
      own,
      [...inFiles, ...world.all(name)].map((each) => each.name),
    );
    const question = near === undefined ? ', and none is in the files' : `; did you mean ${near}?`;
    return [{ path, message: `there is no ${kind.noun[0]} ${own}${question}` }];
  });
}

/** A step for an object of which the caller cannot see all that the file names. */
function hiddenStep({ kind, name, fields }: FileObject, why: string): Step {
  const blocked = `it cannot be compared: ${why}`;
  return { action: 'update', kind, name, fields, differences: [], secrets: [], missingFlags: [], blocked };
}

/** Undefined if the object is as the file says. */
function stepFor(desk: Desk, object: FileObject, { found, isUnseen }: Sight, options: PlanOptions): Step | undefined {
  const { kind: name, name: own, fields } = object;
  const kind = kinds[name];
  const wanted: Wanted = { kind: name, name: own, fields };
  const common = { kind: name, name: own, fields };
  const missing = (known: Found | undefined, changes: readonly Difference[]) =>
    missingOf(kind.flagsFor(wanted, known, changes), options, known?.id === desk.caller);
  const isUnfinished = found?.isUnfinished && found.managedBy === desk.managedBy;
  if (!found || isUnfinished) {
    return {
      action: 'create',
      ...common,
      differences: [],
      secrets: kind.secrets(wanted, found),
      ...(found && { before: stateDigest(found), ...goingOn(wanted, found) }),
      ...(isUnseen && { isUnseen: true }),
      missingFlags: missing(found, []),
    };
  }
  const adopts = options.adopt && kind.remove !== undefined && found.managedBy !== desk.managedBy;
  const mark: Difference = { field: 'props.managedBy', before: found.managedBy, after: desk.managedBy };
  const differences = [...kind.differences(wanted, found), ...(adopts ? [mark] : [])];
  if (differences.length === 0) return undefined;
  const missingFlags = missing(found, differences);
  const secrets = kind.secrets(wanted, found);
  const before = stateDigest(found);
  const isOthers = found.managedBy !== undefined && found.managedBy !== desk.managedBy;
  const more = {
    ...(isOthers && { owner: found.managedBy }),
    ...(adopts && { adopts }),
    ...(kind.isHalfDone?.(wanted, found) && { isUnfinished: true as const }),
  };
  return { action: 'update', ...common, differences, before, secrets, missingFlags, ...more };
}

/** How an object is made that an earlier run has left unfinished. */
export function goingOn(wanted: Wanted, found: Found): Pick<Step, 'isUnfinished' | 'isContinued'> {
  return kinds[wanted.kind].isHalfDone?.(wanted, found) ? { isUnfinished: true } : { isContinued: true };
}

/** @param isSelf whether it is the caller itself, who may hold flags that it does not grant. */
function missingOf(needed: readonly string[], { flags }: PlanOptions, isSelf: boolean): readonly string[] {
  const held = parseFlags(flags);
  const missing = [...new Set(needed)].filter((flag) => !held.covers(flag));
  return isSelf ? missing.filter((flag) => isKnownFlag(flag)) : missing;
}

/** The step with what stands against it now, and the digest of all that the caller can see of its object. */
async function judged(desk: Desk, given: Step, found: Found | undefined): Promise<Step> {
  if (!found || given.blocked !== undefined) return given;
  const step = { ...given, before: stateDigest(await wholeOf(desk, given.kind, found)) };
  const { blockedBecause, keptBecause } = kinds[step.kind];
  const alone = { leaving: new Set<string>(), wanted: [] };
  const isAgain = step.action === 'create';
  const blocked = await seen(
    isAgain ? keptBecause?.(desk, found, alone) : blockedBecause?.(desk, found, step.differences),
  );
  return blocked === undefined ? step : { ...step, blocked };
}

/** Why something cannot be done now; not being able to see that is a reason. */
async function seen(why: Promise<string | undefined> | undefined): Promise<string | undefined> {
  try {
    return await why;
  } catch (error) {
    if (!isHidden(error)) throw error;
    return `what uses it cannot be seen: ${error.message}`;
  }
}

/** Objects of the files that name others, by kind and name of those. */
function referrers(objects: readonly FileObject[]): ReadonlyMap<string, FileObject> {
  const named = objects.flatMap((object) =>
    kinds[object.kind].references(object).map((reference) => [keyOf(reference), object] as const),
  );
  return new Map(named);
}

/** Digest of an object that is removed. */
export function leavingDigest(kind: KindName, found: Found, wanted: readonly Wanted[]): string {
  return stateDigest(kinds[kind].unclaimed?.(found, wanted) ?? found);
}

interface Leaving {
  readonly kind: KindName;
  /** With all fields that the caller may see. */
  readonly found: Found;
}

interface Removals {
  readonly removals: readonly Step[];
  readonly kept: readonly Kept[];
  readonly leaving: readonly Leaving[];
}

async function removalsIn(
  desk: Desk,
  world: World,
  objects: readonly FileObject[],
  names: readonly KindName[],
  options: PlanOptions,
): Promise<Removals> {
  const removals: Step[] = [];
  const kept: Kept[] = [];
  const gone: Leaving[] = [];
  const leaving = new Set<string>();
  const named = referrers(objects);
  for (const name of names.toReversed()) {
    const kind = kinds[name];
    const inFiles = new Set(objects.filter((each) => each.kind === name).map((each) => kind.nameKey(each.name)));
    const own = world
      .all(name)
      .filter((found) => found.managedBy === desk.managedBy && !inFiles.has(kind.nameKey(found.name)));
    // Those of one kind may need each other.
    const after = { leaving: new Set([...leaving, ...own.map(({ id }) => id)]), wanted: objects };
    const whys = await inParallel(own, async (found) => {
      const referrer = named.get(keyOf({ kind: name, name: found.name }));
      if (referrer) return `the ${kinds[referrer.kind].noun[0]} ${referrer.name} names it`;
      return seen(kind.keptBecause?.(desk, found, after));
    });
    const wholes = await inParallel(own, (found) => wholeOf(desk, name, found));
    for (const [at, found] of own.entries()) {
      const why = whys[at];
      if (why !== undefined) {
        kept.push({ kind: name, name: found.name, why });
        continue;
      }
      leaving.add(found.id);
      const whole = wholes[at] ?? found;
      gone.push({ kind: name, found: whole });
      const missingFlags = missingOf(kind.flagsFor(undefined, found, []), options, false);
      removals.push({
        action: 'remove',
        kind: name,
        name: found.name,
        id: found.id,
        differences: [],
        before: leavingDigest(name, whole, objects),
        secrets: [],
        missingFlags,
      });
    }
  }
  return { removals, kept, leaving: gone };
}
