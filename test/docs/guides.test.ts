// Everything that the guides tell people to type is typed here, in the order of the page, and what they show of it is
// compared.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Command, isAsShown, type Step, stepsOf } from './blocks.ts';
import { Shell } from './shell.ts';

const pages = [
  'README.md',
  'docs/guide-operator.md',
  'docs/guide-developer.md',
  'docs/guide-auditor.md',
  'docs/cli.md',
  'docs/sdk.md',
  'docs/metrics.md',
  'docs/running.md',
  'docs/upgrading.md',
  'docs/custody.md',
  'docs/backup.md',
  'docs/tenants.md',
  'docs/oidc.md',
  'docs/activity-export.md',
  'docs/activity-streaming.md',
];

/** Programs of the client library that sdk.test.ts runs. */
const runElsewhere: Readonly<Record<string, readonly string[]>> = { 'README.md': ['js'], 'docs/sdk.md': ['js'] };

/** Blocks of a page that are not run, at most; each says why. */
const mostNotRun = 3;

for (const page of pages) {
  test(page, async () => {
    const steps = stepsOf(readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'), runElsewhere[page]);
    const notRun = steps.flatMap((step) => (step.kind === 'not-run' ? [step.reason] : []));
    assert.ok(notRun.length <= mostNotRun, `${page}: ${notRun.length} blocks are not run`);
    for (const reason of notRun) assert.ok(reason.length >= 10, reason);
    await runAll(page, steps);
  });
}

test('the README a second time: what an earlier appliance left in the home directory is in nobody’s way', async () => {
  const steps = stepsOf(readFileSync(new URL('../../README.md', import.meta.url), 'utf8'), ['js']);
  await using first = await Shell.open();
  await runOne('first', first, initialised);
  // Of an appliance whose commands kept the keys of all appliances together.
  const rings = join(first.home, '.config', 'kms', 'rings');
  mkdirSync(rings, { recursive: true, mode: 0o700 });
  writeFileSync(join(rings, 'payroll.key'), Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 });
  for (const text of [
    'kms keyring create payroll',
    'kms asym create partners',
    'KMS_API_KEY=kms_x kms profile add old --server https://kms.example',
    'kms profile use old',
  ]) {
    await runOne('first', first, { ...initialised, text });
  }
  await runAll('README.md', steps, first.home);
});

async function runAll(page: string, steps: readonly Step[], home?: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  let shell = stack.use(await Shell.open(home));
  for (const step of steps) {
    if (step.kind === 'fresh') shell = stack.use(await Shell.open());
    else if (step.kind === 'appliance') await runOne(page, shell, initialised);
    else if (step.kind === 'stop-server') await shell.stopServers();
    else if (step.kind === 'file') shell.write(step.name, step.text);
    else if (step.kind === 'commands') for (const command of step.commands) await runOne(page, shell, command);
  }
}

const initialised: Command = { line: 0, text: 'kms init', shown: [], exitCode: 0 };

async function runOne(page: string, shell: Shell, { line, text, shown, exitCode }: Command): Promise<void> {
  const serves = /^(?:\w+=\S+ )*(?:dist\/)?kms serve\b|^\.\/scripts\/start\b/.test(text);
  const isEnough = (output: string): boolean => isAsShown(output, shown, { begins: serves });
  const ended = await (serves ? shell.serve(text, isEnough) : shell.run(text));
  const where = `${page}:${line}: ${text}\n${ended.output}`;
  assert.equal(ended.exitCode, exitCode, where);
  if (shown.length > 0) assert.ok(isEnough(ended.output), where);
}

test('what is shown stands for what comes, and for nothing else', () => {
  const yes: [string, string[]][] = [
    ['a\nb\n', ['a', 'b']],
    ['a\nb  \n\n', ['a', 'b']],
    ['id ring_01 x\n', ['id ring_… x']],
    ['a\nb\nc\n', ['a', '…', 'c']],
    ['a\nc\n', ['a', '…', 'c']],
    ['a\n', ['…']],
    ['{"a.b": [1]}\n', ['{"a.b": [1]}']],
  ];
  const no: [string, string[]][] = [
    ['a\nb\n', ['a']],
    ['a\n', ['a', 'b']],
    ['aXb\n', ['a.b']],
    ['b\na\n', ['a', '…']],
    ['', ['a']],
  ];
  for (const [output, shown] of yes) assert.ok(isAsShown(output, shown), JSON.stringify([output, shown]));
  for (const [output, shown] of no) assert.ok(!isAsShown(output, shown), JSON.stringify([output, shown]));
  assert.ok(isAsShown('a\nb\n', ['a'], { begins: true }));
});

test('a block that is neither run nor said not to be is found', () => {
  for (const wrong of [
    '```sh\nls\n```',
    '```\nls\n```',
    '```console\nls\n```',
    '```console\n$ ls\n',
    '<!-- something else -->',
  ]) {
    assert.throws(() => stepsOf(wrong), /^Error: line \d+: /, wrong);
  }
  const [step] = stepsOf('```console\n$ a \\\n  b\nout\n$ c   # exit code 3\n```');
  assert.deepEqual(step?.kind === 'commands' && step.commands.map(({ line: _, ...rest }) => rest), [
    { text: 'a \\\n  b', shown: ['out'], exitCode: 0 },
    { text: 'c   # exit code 3', shown: [], exitCode: 3 },
  ]);
});

test('the picture of a terminal in the README shows the commands that stand beside it', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const picture = readFileSync(new URL('../../docs/pictures/terminal.svg', import.meta.url), 'utf8');
  const [first, second] = stepsOf(readme, ['js']).flatMap((step) => (step.kind === 'commands' ? [step] : []));
  const commands = [...(first?.commands ?? []), ...(second?.commands ?? [])].map(({ text }) => `$ ${text}`);
  const typed = [...picture.matchAll(/>(\$ [^<]*)</g)].map(([, text = '']) => text.replaceAll('&gt;', '>'));
  assert.ok(commands.length >= 5);
  assert.deepEqual(typed, commands);
});
