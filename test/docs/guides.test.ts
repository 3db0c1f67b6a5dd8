// Every command in the guides is run, in the order of the page, and its output is compared with what the page shows.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isAsShown, stepsOf } from './blocks.ts';
import { Shell } from './shell.ts';
import { initialised, typeOne, typePage, typeSteps } from './typing.ts';

const pages = [
  'README.md',
  'docs/tour.md',
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
  'docs/tofu.md',
  'docs/guide-opentofu.md',
  'docs/guide-managed-keys.md',
  'docs/guide-workloads.md',
  'docs/guide-as-code.md',
  'docs/guide-vault.md',
  'docs/guide-aws-kms.md',
  'docs/guide-kmip.md',
  'docs/guide-approvals.md',
  'docs/kubernetes.md',
  'docs/activity-export.md',
  'docs/activity-streaming.md',
];

/** Programs of the client library that sdk.test.ts runs. */
const runElsewhere: Readonly<Record<string, readonly string[]>> = { 'README.md': ['js'], 'docs/sdk.md': ['js'] };

for (const page of pages) test(page, () => typePage(page, runElsewhere[page]));

test('the README a second time: what an earlier appliance left in the home directory is in nobody’s way', async () => {
  const steps = stepsOf(readFileSync(new URL('../../README.md', import.meta.url), 'utf8'), ['js']);
  await using first = await Shell.open();
  await typeOne('first', first, initialised);
  // A key of a build that kept the keys of all appliances together.
  const rings = join(first.home, '.config', 'kms', 'rings');
  mkdirSync(rings, { recursive: true, mode: 0o700 });
  writeFileSync(join(rings, 'payroll.key'), Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 });
  for (const text of [
    'kms keyring create payroll',
    'kms asym create partners',
    // Not the default profile, or commands would go to its server.
    'KMS_API_KEY=kms_x kms profile add old --server https://kms.example',
  ]) {
    await typeOne('first', first, { ...initialised, text });
  }
  await typeSteps('README.md', steps, first.home);
});

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
  const claims = { iss: 'https://ci.example.org' };
  assert.deepEqual(stepsOf(`<!-- token: ci.token ${JSON.stringify(claims)} -->`), [
    { kind: 'token', name: 'ci.token', claims },
  ]);
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
