// Apply carries out the steps of a plan: in parallel, except those that depend on others. A failure leaves each step
// either done or not begun, and a change that waits for approval holds up only what depends on it; running apply again
// continues.
import type { KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { stateDigest } from './digest.ts';
import type { After, Desk, Difference, Found, Wanted, Workplace } from './kind.ts';
import { kinds } from './kind-table.ts';
import { inParallel } from './parallel.ts';
import { goingOn, leavingDigest, type Step } from './plan.ts';
import type { KeptSecret, ReservedPlaces, SecretPlaces } from './secret-places.ts';
import { waitsAs } from './waiting.ts';
import { type Sight, World, wholeOf } from './world.ts';

/** A step with the object that it is about, as the appliance has it now. */
export interface Task {
  readonly step: Step;
  readonly found: Found | undefined;
}

interface Failure {
  readonly step: Step;
  readonly error: unknown;
}

export interface Applied {
  readonly done: readonly Step[];
  readonly failed: readonly Failure[];
  /** Those of failed steps too, unless what they open is gone. */
  readonly secrets: readonly KeptSecret[];
}

/**
 * The steps that are still to be done, with their objects. Throws `refused` if an object is neither as it was when the
 * plan was made nor as the plan makes it.
 */
export async function tasksOf(desk: Desk, steps: readonly Step[]): Promise<readonly Task[]> {
  const world = new World(desk);
  await world.read(steps.map(({ kind }) => kind));
  const wanted = steps.map(wantedOf);
  const sights = await inParallel(await world.sights(wanted), async (named, at) => {
    const step = steps[at];
    const sight = step ? sightFor(world, step, named) : named;
    return step && sight.found ? { ...sight, found: await wholeOf(desk, step.kind, sight.found) } : sight;
  });
  const tasks = steps.flatMap((step, at): Task[] => {
    const sight = sights[at];
    const object = wanted[at];
    if (!sight || !object) return [];
    const { found } = sight;
    const digest = (there: Found) =>
      step.action === 'remove' ? leavingDigest(step.kind, there, wanted) : stateDigest(there);
    const now = sight.twins.length > 0 ? 'several' : found && digest(found);
    if (now === step.before) return [{ step, found }];
    if (step.action === 'remove' ? !found && sight.twins.length === 0 : found && isDone(desk, step, object, found))
      return [];
    const rest = found && restOf(desk, step, object, found);
    if (rest) return [{ step: rest, found }];
    const what = `${kinds[step.kind].noun[0]} ${step.name}`;
    throw new KmsError('refused', `${what} is not as it was when the plan was made; nothing was done`, {
      hint: 'make a new plan',
    });
  });
  const after = afterAll(tasks, steps);
  await inParallel(tasks, (task) => needRemovable(desk, task, after, '; nothing was done'));
  return tasks;
}

function wantedOf({ kind, name, fields = {} }: Step): Wanted {
  return { kind, name, fields };
}

/** A removal means the very object of its plan, whichever have its name by now. */
function sightFor(world: World, { action, kind, id }: Step, named: Sight): Sight {
  if (action !== 'remove' || id === undefined || !world.isListed(kind)) return named;
  return { found: world.all(kind).find((each) => each.id === id), isUnseen: false, twins: [] };
}

function afterAll(tasks: readonly Task[], steps: readonly Step[]): After {
  const leaving = tasks.flatMap(({ step, found }) => (step.action === 'remove' && found ? [found.id] : []));
  return { leaving: new Set(leaving), wanted: madeBy(steps) };
}

function madeBy(steps: Iterable<Step>): Wanted[] {
  return [...steps].flatMap((step) => (step.action === 'remove' ? [] : [wantedOf(step)]));
}

class Stays extends KmsError {}

/** Throws `refused` if something has come that a removal would take along. */
async function needRemovable(desk: Desk, { step, found }: Task, after: After, end = ''): Promise<void> {
  const { kind, name, action } = step;
  if (action !== 'remove' || !found) return;
  const why = await kinds[kind].keptBecause?.(desk, found, after);
  if (why !== undefined) throw new Stays('refused', `${kinds[kind].noun[0]} ${name} stays: ${why}${end}`);
}

function isDone(desk: Desk, step: Step, wanted: Wanted, found: Found): boolean {
  return !found.isUnfinished && isMarked(desk, step, found) && kinds[step.kind].differences(wanted, found).length === 0;
}

function isMarked(desk: Desk, { adopts }: Step, { managedBy }: Found): boolean {
  return !adopts || managedBy === desk.managedBy;
}

/** The rest of a step that an earlier run has begun; undefined if anything else has changed. */
function restOf(desk: Desk, step: Step, wanted: Wanted, found: Found): Step | undefined {
  const kind = kinds[step.kind];
  const isOurs = found.managedBy === desk.managedBy;
  if (step.action === 'remove') return undefined;
  const secrets = kind.secrets(wanted, found);
  if (step.action === 'create' && found.isUnfinished) {
    return isOurs ? { ...step, secrets, ...goingOn(wanted, found) } : undefined;
  }
  const differences = kind.differences(wanted, found);
  const rest: Step = {
    ...step,
    action: 'update',
    differences,
    secrets,
    ...(kind.isHalfDone?.(wanted, found) && { isUnfinished: true }),
  };
  if (step.action === 'create') {
    const isLater = ({ field }: Difference): boolean => kind.laterFields?.includes(field.split('.')[0] ?? '') === true;
    return isOurs && differences.every(isLater) ? rest : undefined;
  }
  return step.before === stateDigest(takenBack(step, wanted, found, differences)) ? rest : undefined;
}

/** The object as it was before the step, if all that has changed since is part of the step. */
function takenBack(step: Step, wanted: Wanted, found: Found, rest: readonly Difference[]): Found {
  const kind = kinds[step.kind];
  let { fields, managedBy } = found;
  for (const planned of step.differences) {
    const { field, before } = planned;
    const isDone = !rest.some((each) => each.field === field);
    if (field === 'props.managedBy') managedBy = before === undefined ? undefined : String(before);
    else if (isDone || kind.isBetween?.(planned, wanted, found)) fields = withValue(fields, field.split('.'), before);
  }
  const { managedBy: _, ...others } = found;
  return { ...others, fields, ...(managedBy !== undefined && { managedBy }) };
}

function withValue(fields: JsonObject, [name = '', ...rest]: readonly string[], value: unknown): JsonObject {
  return { ...fields, [name]: rest.length === 0 ? value : withValue(Object(fields[name]), rest, value) };
}

/**
 * Tasks in groups, each after those before it: removals that make room for others; then by what they refer to, then
 * rules, which may stop all others; then the other removals, of rules first; and the caller's own object, which may
 * lose the flags for all this.
 */
function groupsOf(tasks: readonly Task[], caller: string): readonly (readonly Task[])[] {
  const order = Object.keys(kinds);
  const made = new Set(tasks.filter(({ step }) => step.action !== 'remove').map(({ step }) => keyOf(step)));
  const first = new Set(tasks.flatMap(({ step }) => (step.after ?? []).map(keyOf)));
  const depth = ({ kind, name, fields = {} }: Step): number => {
    if (kind === 'tenant-limits') return 0;
    if (kind === 'rule') return 3;
    const references = kinds[kind].references({ kind, name, fields });
    return references.some((each) => made.has(keyOf(each))) ? 2 : 1;
  };
  const rank = ({ step, found }: Task): number => {
    if (step.action === 'remove') return first.has(keyOf(step)) ? -1 : 4 + order.length - order.indexOf(step.kind);
    return found?.id === caller ? Number.POSITIVE_INFINITY : depth(step);
  };
  const groups = Map.groupBy(tasks, rank);
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
}

function keyOf({ kind, name }: { readonly kind: KindName; readonly name: string }): string {
  return JSON.stringify([kind, kinds[kind].nameKey(name)]);
}

interface ApplyOptions {
  readonly places: SecretPlaces | undefined;
  /** Once it aborts, no further step is begun; those under way are finished. */
  readonly signal: AbortSignal;
  /** Called with each step that is done. */
  onDone(step: Step): Promise<void>;
}

export async function applyTasks(desk: Desk, tasks: readonly Task[], options: ApplyOptions): Promise<Applied> {
  const run = new Run(desk, tasks, options);
  // A step may need one of a later group: removals make room under a limit, for example.
  while (await run.pass());
  return run;
}

/** Steps as they are done, each once those are done that it needs. */
class Run implements Applied {
  readonly done: Step[] = [];
  readonly failed: Failure[] = [];
  readonly secrets: KeptSecret[] = [];
  readonly #desk: Desk;
  readonly #options: ApplyOptions;
  readonly #groups: readonly (readonly Task[])[];
  readonly #left: Map<Step, Found | undefined>;
  /** Refused by a limit, under which removals of the plan may make room. */
  #short: Failure[] = [];

  constructor(desk: Desk, tasks: readonly Task[], options: ApplyOptions) {
    this.#desk = desk;
    this.#options = options;
    this.#groups = groupsOf(tasks, desk.caller);
    this.#left = new Map(tasks.map(({ step, found }) => [step, found]));
  }

  /** Goes through all steps that are left. Returns whether another pass may get further. */
  async pass(): Promise<boolean> {
    this.#short = [];
    const before = this.done.length;
    for (const group of this.#groups) {
      if (this.#isStopped()) break;
      await inParallel(group, (task) => this.#try(task));
    }
    const isLeft = this.#left.size > this.failed.length;
    const isMore = isLeft && this.done.length > before && !this.#isStopped() && !this.#options.signal.aborted;
    if (!isMore) this.failed.push(...this.#short);
    return isMore;
  }

  /** A failure ends it with the steps beside; a change that waits for approval does not. */
  #isStopped(): boolean {
    return this.failed.some(({ error }) => waitsAs(error).length === 0);
  }

  async #try(task: Task): Promise<void> {
    const { step } = task;
    const { places, signal, onDone } = this.#options;
    const isOver = signal.aborted || this.failed.some(({ error }) => isOfAll(error));
    if (isOver || !this.#left.has(step) || this.failed.some((each) => each.step === step) || !this.#isReady(task))
      return;
    try {
      await doTask(this.#desk, task, places, this.secrets);
      this.#left.delete(step);
      this.done.push(step);
      await onDone(step);
    } catch (error) {
      if (error instanceof Stays && (await this.#isHeldUp(task))) return;
      const isRoomToCome = [...this.#left.keys()].some(({ action, kind }) => action === 'remove' && kind === step.kind);
      const isShort = error instanceof KmsError && error.code === 'quota' && step.action === 'create' && isRoomToCome;
      (isShort ? this.#short : this.failed).push({ step, error });
    }
  }

  /** Whether all that the step needs is done. */
  #isReady({ step, found }: Task): boolean {
    const left = [...this.#left.keys()].filter((each) => each !== step);
    if (found?.id === this.#desk.caller) return left.length === 0;
    const { action, kind, name, fields = {}, after = [] } = step;
    const changes = left.filter((each) => each.action !== 'remove');
    if (action === 'remove') {
      // It may be the former of something new that waits for approval.
      const isFirst = left.some((each) => each.after?.some((one) => keyOf(one) === keyOf(step)));
      const isNewWaiting = changes.some((each) => each.kind === kind && each.action === 'create');
      return isFirst || this.failed.length === 0 || !isNewWaiting;
    }
    if (kind === 'rule') return changes.every((each) => each.kind === kind);
    const needed = new Set([...after, ...kinds[kind].references({ kind, name, fields })].map(keyOf));
    return left.every((each) => !needed.has(keyOf(each)));
  }

  /** Whether only other steps, which are left, keep something from being removed. */
  async #isHeldUp({ step, found }: Task): Promise<boolean> {
    const removals = [...this.#left].flatMap(([{ action }, each]) => (action === 'remove' && each ? [each.id] : []));
    const leaving = new Set(removals.filter((id) => id !== found?.id));
    const wanted = madeBy(this.#left.keys());
    if (!found || leaving.size + wanted.length === 0) return false;
    return (await kinds[step.kind].keptBecause?.(this.#desk, found, { leaving, wanted })) === undefined;
  }
}

function isOfAll(error: unknown): boolean {
  if (!(error instanceof KmsError)) return true;
  return ['unavailable', 'sealed', 'unauthenticated', 'quota'].includes(error.code);
}

const noPlaces: ReservedPlaces = {
  kept: [],
  async deliver({ label }) {
    throw new KmsError('internal', `no place was reserved for ${label}`);
  },
  withdraw: async () => undefined,
  release: async () => undefined,
};

/** @param secrets gets those that were kept. */
async function doTask(desk: Desk, task: Task, places: SecretPlaces | undefined, secrets: KeptSecret[]): Promise<void> {
  const { step, found } = task;
  const kind = kinds[step.kind];
  if (step.action === 'remove') {
    // Whatever goes along is gone by now.
    await needRemovable(desk, task, { leaving: new Set(), wanted: [] });
    if (found) await kind.remove?.(desk, found);
    return;
  }
  const { name, secrets: labels } = step;
  const isAgain = step.isUnfinished === true || step.isContinued === true;
  // Before the object is made: a secret that cannot be kept is useless.
  const reserved = labels.length > 0 && places ? await places.reserve(step.kind, name, labels, isAgain) : noPlaces;
  const workplace: Workplace = { ...desk, goesOn: true, deliver: reserved.deliver, withdraw: reserved.withdraw };
  const wanted = wantedOf(step);
  try {
    if (step.action === 'create') await kind.create(workplace, wanted, found);
    else if (found) await change(workplace, step, wanted, found);
  } finally {
    secrets.push(...reserved.kept);
    await reserved.release();
  }
}

/** A change; one that adopts the object sets the mark along with its properties. */
async function change(desk: Workplace, step: Step, wanted: Wanted, found: Found): Promise<void> {
  const kind = kinds[step.kind];
  if (!step.adopts) return kind.update(desk, wanted, found, step.differences);
  const props = wanted.fields.props ?? found.fields.props;
  const adopted = { ...wanted, fields: { ...wanted.fields, props } };
  const differences = [
    ...step.differences.filter(({ field }) => field !== 'props'),
    { field: 'props', before: undefined, after: props },
  ];
  return kind.update(desk, adopted, { ...found, managedBy: desk.managedBy }, differences);
}
