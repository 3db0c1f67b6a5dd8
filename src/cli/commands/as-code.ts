// `kms plan`, `kms apply`, `kms export` and `kms schema`: configuration as code. Everything goes through the API, with
// the caller's flags, over whichever way the options select.
import { configurationSchema } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { type Applied, applyTasks, type Task, tasksOf } from '../as-code/apply.ts';
import { deskAt, type SeatedDesk } from '../as-code/desk.ts';
import { exportedObjects, yamlOf } from '../as-code/export.ts';
import { FilesRefused, readConfiguration } from '../as-code/files.ts';
import { kinds } from '../as-code/kind-table.ts';
import { unmetWarnings } from '../as-code/kinds/rule.ts';
import { isMark, markForm } from '../as-code/mark.ts';
import { writeDriftMetrics } from '../as-code/metrics.ts';
import { makePlan, type PlannedChanges, type Step } from '../as-code/plan.ts';
import { type Plan, readPlan, savePlan, sealedPlan } from '../as-code/plan-file.ts';
import { planLines, summary, titled } from '../as-code/plan-text.ts';
import { type KeptSecret, secretPlaces } from '../as-code/secret-places.ts';
import { lacksOf, waitsAs } from '../as-code/waiting.ts';
import type { CliOf } from '../command.ts';
import { confirm, confirmAtTerminal } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { exitCodes, Interrupted, sentenceOf } from '../exit.ts';
import { type asCode, type described, fileKinds } from '../grammar/as-code.ts';
import { pathFrom, say, tell, write } from '../io.ts';
import { printJson, printLine } from '../output.ts';
import { visible } from '../text.ts';

type PlanCli = CliOf<typeof asCode.plan>;
type ApplyCli = CliOf<typeof asCode.apply>;
type DescribedCli = CliOf<typeof described>;

/** Exit code for a plan that has changes. */
const hasChanges = 2;

export async function plan(cli: PlanCli): Promise<number> {
  if (cli.get('--file').length === 0) throw cli.wrong('--file is missing: what shall there be?');
  const isDrift = cli.get('--drift');
  return withClient(cli, async (_client, connection) => {
    const desk = await deskAt(cli, connection, deskOptions(cli));
    const made = await planFor(cli, desk, cli.get('--prune') || isDrift);
    const out = cli.get('--out');
    if (out !== undefined) await savePlan(made, out);
    const metrics = cli.get('--metrics-file');
    if (metrics !== undefined) await writeDriftMetrics(metrics, made, Date.now());
    if (cli.json) await printJson(cli, made);
    else await showPlan(cli, made);
    if (out !== undefined) await say(cli.io, visible(`the plan is in ${out}: \`kms apply ${out}\` does it`));
    // An object that is protected from removal is drift as well.
    const isDifferent = made.steps.length > 0 || (isDrift && made.kept.length > 0);
    return isDifferent ? hasChanges : exitCodes.done;
  });
}

function deskOptions(cli: DescribedCli) {
  return { managedBy: markIn(cli), isUsedAllowed: cli.get('--used') };
}

/** Throws `usage` for a mark that is no plain name. */
function markIn(cli: DescribedCli): string {
  const mark = cli.get('--managed-by');
  if (isMark(mark)) return mark;
  throw cli.wrong(`--managed-by: ${markForm}`);
}

async function planFor(cli: DescribedCli, desk: SeatedDesk, prune: boolean): Promise<Plan> {
  const objects = await readConfiguration(cli.io, cli.get('--file'), prune).catch(async (error) => {
    throw await told(cli, error);
  });
  const { flags, appliance, tenant, caller, managedBy } = desk;
  const options = { prune, adopt: cli.get('--adopt'), anyFlag: cli.get('--any-flag'), flags };
  const changes = await makePlan(desk, objects, options).catch(async (error) => {
    throw await told(cli, error);
  });
  return sealedPlan(changes, { appliance, tenant, caller, managedBy }, Date.now());
}

/** Several problems of files are told one a line. */
async function told(cli: DescribedCli, error: unknown): Promise<unknown> {
  if (error instanceof FilesRefused) for (const line of error.lines) await tell(cli.io, `${line}\n`);
  return error;
}

async function showPlan(cli: DescribedCli, changes: PlannedChanges): Promise<void> {
  for (const line of planLines(changes)) await write(cli.io.stdout, `${line}\n`);
  await printLine(cli, summary(changes));
}

export async function apply(cli: ApplyCli): Promise<number> {
  const file = cli.get('[PLAN]');
  checkUsage(cli, file);
  const places = await secretPlaces({
    directory: cli.get('--secrets-out'),
    recipient: cli.get('--secrets-to'),
    show: ({ name, label, sealed }) => write(cli.io.stdout, `${visible(`${name} ${label}:`)}\n${sealed}`),
  });
  return withClient(cli, async (_client, connection) => {
    const seated = await deskAt(cli, connection, deskOptions(cli));
    const made =
      file === undefined
        ? await planFor(cli, seated, cli.get('--prune'))
        : await readPlan(pathFrom(cli.io, file), seated);
    const desk = seated.withPlan(made.digest);
    const planned = { ...desk, managedBy: made.managedBy };
    const tasks = await tasksOf(planned, made.steps);
    const steps = tasks.map(({ step }) => step);
    const left: PlannedChanges = { ...made, steps };
    if (!cli.json) await showPlan(cli, left);
    needPossible(cli, steps, places !== undefined);
    places?.refuseTwins(steps);
    const what = summary(left);
    // Removing takes a word, with or without a terminal; all else asks only on one, and a saved plan was agreed to.
    if (steps.some(isRemoving)) await confirm(cli, `takes away what is above: ${what}`);
    else if (steps.length > 0 && file === undefined) await confirmAtTerminal(cli, `changes the appliance: ${what}`);
    const applied = await applyTasks(planned, tasks, {
      places,
      signal: cli.io.signal,
      async onDone(step) {
        if (!cli.json) await printLine(cli, `${past[step.action]} ${titled(step.kind, step.name)}`);
      },
    });
    const code = await report(cli, made, tasks, applied);
    const rules = applied.done.filter(({ kind, action }) => kind === 'rule' && action !== 'remove');
    const warnings = await unmetWarnings(
      planned,
      rules.map(({ name }) => name),
    );
    for (const { name, text } of warnings) await say(cli.io, visible(`warning: ${titled('rule', name)}: ${text}`));
    return code;
  });
}

const past = { create: 'made', update: 'changed', remove: 'removed' } as const;

/** Options that a saved plan already has. */
const inPlan = ['--prune', '--adopt', '--managed-by', '--any-flag'] as const;

function checkUsage(cli: ApplyCli, file: string | undefined): void {
  const hasFiles = cli.get('--file').length > 0;
  if (file === undefined && !hasFiles) throw cli.wrong('expected a PLAN, or --file');
  if (file !== undefined && hasFiles) {
    throw cli.wrong('expected a PLAN or --file, got both: each file takes its own -f, and a directory one');
  }
  const odd = file === undefined ? undefined : inPlan.find((option) => cli.isTyped(option));
  if (odd !== undefined) throw cli.wrong(`${odd}: a saved plan says that already`);
  // A secret is kept before what it opens is live, and JSON comes at the end.
  const isOutput = cli.get('--secrets-to') !== undefined && cli.get('--secrets-out') === undefined;
  if (isOutput && cli.json) throw cli.wrong('--secrets-to with --json needs --secrets-out DIR');
}

/** Throws `refused` if a step is certain to fail: nothing is begun then. */
function needPossible(cli: ApplyCli, steps: readonly Step[], hasPlaces: boolean): void {
  const impossible = steps.find(({ missingFlags, blocked }) => missingFlags.length > 0 || blocked !== undefined);
  if (impossible) {
    const { kind, name, blocked, missingFlags } = impossible;
    const why = blocked ?? `the permission flag ${missingFlags[0]} is missing`;
    throw new KmsError('refused', `${titled(kind, name)}: ${why}; nothing was done`);
  }
  const first = steps.find(({ secrets }) => secrets.length > 0);
  if (!first || hasPlaces) return;
  throw cli.wrong(
    `${titled(first.kind, first.name)} brings a secret: say where it goes, with --secrets-out DIR or --secrets-to FILE`,
  );
}

/** Whether somebody loses something by it: what is removed, can then not be brought back, or was another's. */
function isRemoving(step: Step): boolean {
  const { action, kind, differences, isUnfinished, restorable, adopts, owner } = step;
  const isProofLost = differences.some(({ words = [] }) => words.some((line) => line.startsWith('- ')));
  const isSecretLost = differences.some(({ field, after }) => field === 'secret' && after === false);
  const isTaken = adopts === true && owner !== undefined;
  const isMadeAgain = isUnfinished === true || restorable !== undefined;
  const isFinal = differences.some((each) => kinds[kind].isFinal?.(each));
  return action === 'remove' || isFinal || isProofLost || isSecretLost || isTaken || isMadeAgain;
}

async function report(cli: ApplyCli, made: Plan, tasks: readonly Task[], applied: Applied): Promise<number> {
  const { done, failed: undone, secrets } = applied;
  const { digest, kept, unchanged } = made;
  const short = ({ action, kind, name }: Step) => ({ action, kind, name });
  const requests = undone.map(({ step, error }) => ({ step, requests: waitsAs(error), lacks: lacksOf(error) }));
  const waiting = requests.filter((each) => each.requests.length > 0);
  const failed = undone.filter(({ error }) => waitsAs(error).length === 0);
  if (cli.json) {
    await printJson(cli, {
      plan: digest,
      done: done.map(short),
      failed: failed.map(({ step, error }) => ({ ...short(step), message: sentenceOf(error) })),
      waiting: waiting.map((each) => ({ ...short(each.step), requests: each.requests })),
      secrets,
      kept,
      unchanged,
    });
  } else await showSecrets(cli, secrets);
  for (const { step, error } of failed) {
    await say(cli.io, visible(`${titled(step.kind, step.name)}: ${sentenceOf(error)}`));
  }
  for (const { step, requests: ids, lacks } of waiting) {
    const line = `${titled(step.kind, step.name)}: waits for approval as ${ids.join(', ')}`;
    await say(cli.io, visible([line, ...lacks].join('; ')));
  }
  const left = tasks.length - done.length - undone.length;
  const count = `${done.length} of ${tasks.length} changes are done`;
  if (cli.io.signal.aborted && left > 0) throw new Interrupted(`${count}, none is half done; run it again to go on`);
  if (undone.length === 0) {
    if (!cli.json && tasks.length > 0) await printLine(cli, `done; the records of it name the plan ${digest}`);
    return exitCodes.done;
  }
  const parts = [
    count,
    ...(failed.length > 0 ? [`${failed.length} failed`] : []),
    ...(waiting.length > 0 ? [`${waiting.length} ${waiting.length === 1 ? 'waits' : 'wait'} for approval`] : []),
    ...(left > 0 ? [`${left} ${left === 1 ? 'comes' : 'come'} after that`] : []),
  ];
  throw new KmsError('refused', parts.join(', '), {
    hint:
      failed.length > 0
        ? 'run it again to go on: what is done stays done'
        : 'run it again once they are approved: what is done stays done',
  });
}

async function showSecrets(cli: ApplyCli, secrets: readonly KeptSecret[]): Promise<void> {
  for (const { name, label, file } of secrets) {
    if (file !== undefined) await printLine(cli, `the secret ${label} of ${name} is in ${file}`);
  }
}

export async function exportFiles(cli: CliOf<typeof asCode.export>): Promise<void> {
  const asked = cli.get('--kind');
  const names = fileKinds.filter((name) => asked.length === 0 || asked.includes(name));
  await withClient(cli, async (_client, connection) => {
    const desk = await deskAt(cli, connection, { managedBy: '', isUsedAllowed: false });
    const { objects, notes } = await exportedObjects(desk, names, asked.length > 0);
    for (const note of notes) await say(cli.io, visible(note));
    if (cli.json) await printJson(cli, objects);
    else await write(cli.io.stdout, await yamlOf(objects));
  });
}

export async function schema(cli: CliOf<typeof asCode.schema>): Promise<void> {
  await printJson(cli, configurationSchema());
}

export { exportFiles as export };
