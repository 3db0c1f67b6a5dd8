// Apply does the steps of a plan: those that depend on others after them, all others side by side. A failure leaves
// whole steps done and others not begun, so that running it again goes on.
import type { KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { stateDigest } from './digest.ts';
import type { After, Desk, Found, Wanted, Workplace } from './kind.ts';
import { kinds } from './kind-table.ts';
import { inParallel } from './parallel.ts';
import type { Step } from './plan.ts';
import type { KeptSecret, ReservedPlaces, SecretPlaces } from './secret-places.ts';
import { World, wholeOf } from './world.ts';

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
  const wanted = steps.map(({ kind, name, fields = {} }): Wanted => ({ kind, name, fields }));
  const sights = await inParallel(await world.sights(wanted), async (sight, at) => {
    const kind = steps[at]?.kind;
    return kind && sight.found ? { ...sight, found: await wholeOf(desk, kind, sight.found) } : sight;
  });
  const tasks = steps.flatMap((step, at): Task[] => {
    const sight = sights[at];
    const object = wanted[at];
    if (!sight || !object) return [];
    const { found } = sight;
    const now = sight.twins.length > 0 ? 'several' : found && stateDigest(found);
    if (now === step.before) return [{ step, found }];
    // This very plan was cut off while it was made.
    const isOurs = found?.isUnfinished && found.managedBy === desk.managedBy;
    if (step.action === 'create' && isOurs) return [{ step: { ...step, isUnfinished: true }, found }];
    if (step.action === 'remove' ? !found : found && isDone(desk, step, object, found)) return [];
    const what = `${kinds[step.kind].noun[0]} ${step.name}`;
    throw new KmsError('refused', `${what} is not as it was when the plan was made; nothing was done`, {
      hint: 'make a new plan',
    });
  });
  const after = afterAll(tasks, wanted);
  await inParallel(tasks, (task) => needRemovable(desk, task, after, '; nothing was done'));
  return tasks;
}

function afterAll(tasks: readonly Task[], wanted: readonly Wanted[]): After {
  const leaving = tasks.flatMap(({ step, found }) => (step.action === 'remove' && found ? [found.id] : []));
  return { leaving: new Set(leaving), wanted };
}

/** Throws `refused` if something has come that a removal would take along. */
async function needRemovable(desk: Desk, { step, found }: Task, after: After, end = ''): Promise<void> {
  const { kind, name, action } = step;
  if (action !== 'remove' || !found) return;
  const why = await kinds[kind].keptBecause?.(desk, found, after);
  if (why !== undefined) throw new KmsError('refused', `${kinds[kind].noun[0]} ${name} stays: ${why}${end}`);
}

function isDone(desk: Desk, step: Step, wanted: Wanted, found: Found): boolean {
  const isMarked = !step.adopts || found.managedBy === desk.managedBy;
  return !found.isUnfinished && isMarked && kinds[step.kind].differences(wanted, found).length === 0;
}

/**
 * Tasks in groups, each after those before it: by what they refer to, then rules, which may stop all others; then
 * removals, of rules first; and the caller's own object, which may lose the flags for all this.
 */
function groupsOf(tasks: readonly Task[], caller: string): readonly (readonly Task[])[] {
  const order = Object.keys(kinds);
  const made = new Set(
    tasks.filter(({ step }) => step.action !== 'remove').map(({ step }) => keyOf(step.kind, step.name)),
  );
  const depth = ({ kind, name, fields = {} }: Step): number => {
    if (kind === 'tenant-limits') return 0;
    if (kind === 'rule') return 3;
    const references = kinds[kind].references({ kind, name, fields });
    return references.some((each) => made.has(keyOf(each.kind, each.name))) ? 2 : 1;
  };
  const rank = ({ step, found }: Task): number => {
    if (step.action === 'remove') return 4 + order.length - order.indexOf(step.kind);
    return found?.id === caller ? Number.POSITIVE_INFINITY : depth(step);
  };
  const groups = Map.groupBy(tasks, rank);
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
}

function keyOf(kind: KindName, name: string): string {
  return JSON.stringify([kind, kinds[kind].nameKey(name)]);
}

interface ApplyOptions {
  readonly places: SecretPlaces | undefined;
  /** Once it aborts, no further step is begun; those under way are finished. */
  readonly signal: AbortSignal;
  /** Called with each step that is done. */
  onDone(step: Step): Promise<void>;
}

export async function applyTasks(
  desk: Desk,
  tasks: readonly Task[],
  { places, signal, onDone }: ApplyOptions,
): Promise<Applied> {
  const done: Step[] = [];
  const failed: Failure[] = [];
  const secrets: KeptSecret[] = [];
  // By then the appliance is as the steps before have made it.
  const after = afterAll(tasks, []);
  for (const group of groupsOf(tasks, desk.caller)) {
    if (failed.length > 0) break;
    await inParallel(group, async (task) => {
      // An appliance that cannot be reached is not asked again and again.
      if (signal.aborted || failed.some(({ error }) => isOfAll(error))) return;
      try {
        await doTask(desk, task, after, places, secrets);
        done.push(task.step);
        await onDone(task.step);
      } catch (error) {
        failed.push({ step: task.step, error });
      }
    });
  }
  return { done, failed, secrets };
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
async function doTask(
  desk: Desk,
  task: Task,
  after: After,
  places: SecretPlaces | undefined,
  secrets: KeptSecret[],
): Promise<void> {
  const { step, found } = task;
  const kind = kinds[step.kind];
  if (step.action === 'remove') {
    await needRemovable(desk, task, after);
    if (found) await kind.remove?.(desk, found);
    return;
  }
  const { name, fields = {}, isUnfinished } = step;
  // Before the object is made: a secret that cannot be kept is useless.
  const reserved =
    step.secrets.length > 0 && places ? await places.reserve(step.kind, name, step.secrets, isUnfinished) : noPlaces;
  const workplace: Workplace = { ...desk, deliver: reserved.deliver, withdraw: reserved.withdraw };
  const wanted: Wanted = { kind: step.kind, name, fields };
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
