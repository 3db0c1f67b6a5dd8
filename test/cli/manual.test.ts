// The manual page that `kms man` prints: complete, and clean roff.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { grammar, leavesOf } from './grammar-tree.ts';
import { desk } from './kms.ts';

async function page(): Promise<string> {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('man', { tty: { stdout: true, columns: 20 } });
  assert.deepEqual([code, stderr], [0, '']);
  return stdout;
}

/** The text of roff, without fonts and escapes. */
function plain(roff: string): string {
  return roff
    .replace(/\\f[BRI]|\\&/g, '')
    .replace(
      /\\\((aq|ga|ha|ti|dq)/g,
      (_, name: string) => ({ aq: "'", ga: '`', ha: '^', ti: '~', dq: '"' })[name] ?? '',
    )
    .replace(/\\([-e])/g, (_, character: string) => (character === 'e' ? '\\' : character));
}

test('the manual page has every command with its options, variables and examples', async () => {
  const lines = plain(await page()).split('\n');
  for (const section of [
    'NAME',
    'SYNOPSIS',
    'DESCRIPTION',
    'OPTIONS',
    'COMMANDS',
    'EXIT STATUS',
    'ENVIRONMENT',
    'FILES',
    'EXAMPLES',
  ]) {
    assert.ok(lines.includes(`.SH ${section}`), section);
  }
  const root = grammar();
  for (const leaf of leavesOf(root)) {
    const at = lines.findIndex((line) => `${line} `.startsWith(`${leaf.fullName()} `));
    assert.ok(at > 0, leaf.fullName());
    const end = lines.findIndex((line, n) => n > at && /^(kms |\.S[SH] )/.test(line));
    const entry = lines.slice(at, end);
    for (const { long } of leaf.options) {
      assert.ok(
        entry.some((line) => line.includes(long ?? '?')),
        `${leaf.fullName()} ${long}`,
      );
      assert.ok(
        long === '--version' || entry.includes(`(KMS_${long?.slice(2).toUpperCase().replaceAll('-', '_')})`),
        `${leaf.fullName()} ${long}`,
      );
    }
    for (const example of leaf.examples) assert.ok(entry.includes(`$ ${example}`), example);
  }
  assert.ok(!lines.some((line) => line.includes('__complete')));
});

test('it is roff: known requests alone, balanced, in lines of ASCII', async () => {
  const text = await page();
  assert.match(text, /^[\n -~]*$/);
  const requests = text.split('\n').filter((line) => /^[.']/.test(line));
  for (const line of requests) assert.match(line, /^\.(\\"|TH|SH|SS|TP|PP|RS|RE|B|I|br|nf|fi)( |$)/);
  const count = (name: string): number => requests.filter((line) => line === name).length;
  assert.equal(count('.RS'), count('.RE'));
  assert.equal(count('.nf'), count('.fi'));
  for (const line of text.split('\n'))
    assert.doesNotMatch(line.replace(/\\(f[BRI]|\((aq|ga|ha|ti|dq)|[-e&"])/g, ''), /\\/);
});

for (const [program, ...args] of [
  ['groff', '-ww', '-man', '-Tutf8', '-z'],
  ['mandoc', '-Tlint', '-Werror'],
] as const) {
  test(`${program} has nothing against it, where it is there`, async () => {
    const { error, status, stdout, stderr } = spawnSync(program, args, { input: await page(), encoding: 'utf8' });
    if (error) assert.ok('code' in error && error.code === 'ENOENT', String(error));
    else assert.deepEqual([status, stdout, stderr], [0, '', '']);
  });
}
