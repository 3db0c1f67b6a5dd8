// The guides as help topics: all of them are listed, shown as plain text, and found by words.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { plainText, targetsOf, topicsOf } from '../../src/cli/guides.ts';
import { desk } from './kms.ts';

const files = readdirSync(new URL('../../docs', import.meta.url)).filter((file) => file.endsWith('.md'));
const forDevelopers = ['architecture.md', 'building.md', 'dependencies.md'];

test('kms help lists every guide behind the commands, and each name shows its guide', async () => {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('help');
  assert.deepEqual([code, stderr], [0, '']);
  assert.ok(stdout.startsWith((await d.kms('--help')).stdout.trimEnd()));
  const [, list = ''] = stdout.split('\nGuides, for `kms help NAME`:\n');
  const topics = list
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
  assert.equal(topics.length, files.length - forDevelopers.length);
  for (const [name = '', title = ''] of topics) {
    const shown = await d.kms(['help', name], { tty: { stdout: true, columns: 80 } });
    assert.deepEqual([shown.code, shown.stderr], [0, ''], name);
    assert.equal(shown.stdout.split('\n')[0], title.toUpperCase(), name);
    assert.doesNotMatch(shown.stdout, /\]\(|^```|<!--/m, name);
    // Nothing here shows a document under such a name; commands in code may name files of the source.
    const named = [...shown.stdout.matchAll(/^(?! {4}).*\b([a-z-]+\.md)\b/gm)].map(([, file = '']) => file);
    assert.deepEqual(
      named.filter((file) => files.includes(file)),
      [],
      name,
    );
  }
});

test('a command comes before a guide of its name', async () => {
  await using d = await desk();
  assert.match((await d.kms('help backup')).stdout, /^Usage: kms backup /);
  assert.match((await d.kms('help guide-backup')).stdout, /^BACKUPS/);
  assert.match((await d.kms('help backup.md')).stdout, /^BACKUPS/);
  assert.match((await d.kms('help guide-operator')).stdout, /^[A-Z' ]+\n/);
  assert.equal((await d.kms('help operator')).stdout, (await d.kms('help guide-operator')).stdout);
});

test('managed keys have a guide, which the list of topics names', async () => {
  await using d = await desk();
  assert.match((await d.kms('help')).stdout, /^ {2}managed-keys +Managed keys$/m);
  const { stdout } = await d.kms('help managed-keys');
  for (const state of ['pre-active', 'suspended', 'compromised', 'destroyed']) assert.ok(stdout.includes(state), state);
});

test('programs without a stored secret have a guide', async () => {
  await using d = await desk();
  assert.match((await d.kms('help')).stdout, /^ {2}workloads +Programs without a stored secret$/m);
  const { stdout } = await d.kms('help workloads');
  for (const word of ['GITHUB ACTIONS', 'SPIFFE', 'kms apikey proof test']) assert.ok(stdout.includes(word), word);
});

test('guides are searched by words', async () => {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('help --search recovery kit');
  assert.deepEqual([code, stderr.replace(/^kms: \d+ more sections; add a word to see fewer\n$/, '')], [0, '']);
  assert.match(stdout, /^custody: THE RECOVERY KIT\n {4}\S/m);
  assert.deepEqual(Object.values(await d.kms('help --search zzqx')).slice(0, 1), [0]);
  assert.equal((await d.kms('help --search zzqx')).stderr, 'kms: no guide has zzqx in one section\n');
});

test('Markdown becomes plain lines', () => {
  const text = [
    '# A *title* of `kms.seal`',
    '',
    'Words with a [link](x.md) and **weight**,',
    'in two lines.',
    '<!-- not run -->',
    '- one item that is too long for a line',
    '- `two`',
    '',
    '```console',
    '$ kms status   # a line of code that is not wrapped',
    '```',
  ].join('\n');
  assert.deepEqual(plainText(text, 30), [
    'A TITLE OF `kms.seal`',
    '',
    'Words with a link and weight,',
    'in two lines.',
    '',
    '- one item that is too long',
    '  for a line',
    '- `two`',
    '',
    '    $ kms status   # a line of code that is not wrapped',
  ]);
});

test('a number of four digits begins no list, and a page that nothing here shows is left out', () => {
  const text = ['In a directory of mode', '0700. One that others can open is refused ([building.md](building.md#a)).'];
  assert.deepEqual(plainText(text.join('\n'), 100), [
    'In a directory of mode 0700. One that others can open is refused.',
  ]);
});

test('code keeps its lines, fenced or indented, in a list too', () => {
  const text = [
    'Type:',
    '',
    '    kms unseal          # asks for a share',
    '',
    '    kms unseal --key-file FILE',
    '',
    'Or:',
    '',
    '1. this',
    '',
    '   ```',
    '   kms seal',
    '   kms status',
    '   ```',
    '2. that',
  ];
  assert.deepEqual(plainText(text.join('\n'), 40), [
    'Type:',
    '',
    '    kms unseal          # asks for a share',
    '',
    '    kms unseal --key-file FILE',
    '',
    'Or:',
    '',
    '1. this',
    '',
    '       kms seal',
    '       kms status',
    '2. that',
  ]);
});

const tableText = [
  '| | flag | when |',
  '|---|---|---|',
  '| status | `a \\| b` | once a minute; and at the start, whether or not anybody asked |',
  '| encrypt | | each time |',
].join('\n');

test('a table has its columns side by side where the last one has room', () => {
  assert.deepEqual(plainText(tableText, 60), [
    '         flag     when',
    '-------  -------  ------------------------------------------',
    'status   `a | b`  once a minute; and at the start, whether',
    '                  or not anybody asked',
    'encrypt  -        each time',
  ]);
});

test('a table without room for that has a paragraph for each row, with the titles', () => {
  assert.deepEqual(plainText(tableText, 36), [
    'status',
    '  flag: `a | b`',
    '  when: once a minute; and at the',
    '    start, whether or not anybody',
    '    asked',
    '',
    'encrypt',
    '  flag: -',
    '  when: each time',
  ]);
});

test('a link to another guide names the command that shows it', () => {
  const guides = ['backup', 'guide-operator', 'running'].map((name) => ({ name, title: name, text: '' }));
  const targetName = targetsOf(guides, topicsOf(guides, ['backup']));
  for (const [link, shown] of [
    ['[running.md](running.md)', '`kms help running`'],
    ['[a start](running.md#start)', 'a start (`kms help running`)'],
    ['[backups](backup.md)', 'backups (`kms help guide-backup`)'],
    ['[the guide](guide-operator.md)', 'the guide (`kms help operator`)'],
    ['[below](#below)', 'below'],
    ['[for developers](building.md)', 'for developers'],
    ['[age](https://age.example)', 'age (https://age.example)'],
    ['[age.example](https://age.example)', 'https://age.example'],
    ['`[Account](x)`', '`[Account](x)`'],
  ] as const) {
    assert.deepEqual(plainText(link, 80, targetName), [shown], link);
  }
});

test('at 80 columns only code and single long words are wider than the terminal', async () => {
  await using d = await desk();
  for (const name of files.filter((file) => !forDevelopers.includes(file))) {
    const { stdout } = await d.kms(['help', name], { tty: { stdout: true, columns: 80 } });
    for (const line of stdout.split('\n')) {
      if (!line.startsWith('    ') && line.length > 80) assert.match(line, /^ *\S+$/, `${name}: ${line}`);
    }
  }
});
