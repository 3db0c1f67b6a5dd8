// The guides as help topics: all of them are listed, shown as plain text, and found by words.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { plainText } from '../../src/cli/guides.ts';
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
  }
});

test('a command comes before a guide of its name', async () => {
  await using d = await desk();
  assert.match((await d.kms('help backup')).stdout, /^Usage: kms backup /);
  assert.match((await d.kms('help backup.md')).stdout, /^BACKUPS/);
  assert.match((await d.kms('help guide-operator')).stdout, /^[A-Z' ]+\n/);
  assert.equal((await d.kms('help operator')).stdout, (await d.kms('help guide-operator')).stdout);
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
    '# A *title*',
    '',
    'Words with a [link](x.md) and **weight**,',
    'in two lines.',
    '<!-- not run -->',
    '- one item that is too long for a line',
    '- `two`',
    '',
    '| a | b |',
    '|---|---|',
    '| first | second \\| third |',
    '```console',
    '$ kms status   # a line of code that is not wrapped',
    '```',
  ].join('\n');
  assert.deepEqual(plainText(text, 30), [
    'A *TITLE*',
    '',
    'Words with a link and weight,',
    'in two lines.',
    '- one item that is too long',
    '  for a line',
    '- `two`',
    '',
    'a: b',
    'first: second | third',
    '    $ kms status   # a line of code that is not wrapped',
  ]);
});
