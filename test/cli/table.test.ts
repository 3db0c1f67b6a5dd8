import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { pairs, table } from '../../src/cli/table.ts';
import { byteCount, progressLine } from '../../src/cli/transfer.ts';
import { shorten, visible, width } from '../../src/cli/visible.ts';

const columns = [
  { title: 'name', value: (row: { name: string }) => row.name },
  { title: 'length', value: (row: { name: string }) => row.name.length },
];

test('a table lines its columns up', () => {
  const rows = [{ name: 'a' }, { name: 'payroll' }];
  assert.deepEqual(table(rows, columns, { columns: undefined, colour: false }), [
    'NAME     LENGTH',
    'a        1',
    'payroll  7',
  ]);
});

test('with colour only the titles differ', () => {
  const [titles] = table([{ name: 'a' }], columns, { columns: undefined, colour: true });
  assert.equal(titles, '\x1b[1mNAME  LENGTH\x1b[22m');
});

test('a table fits the terminal by shortening its widest columns', () => {
  assert.deepEqual(table([{ name: 'x'.repeat(50) }], columns, { columns: 20, colour: false }), [
    'NAME          LENGTH',
    'xxxxxxxxxxx…  50',
  ]);
});

test('no text from elsewhere can touch the terminal', () => {
  assert.equal(visible('a\x1b[2Jb\r\n\t\x7f\x9b'), 'a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f\\x9b');
  assert.equal(visible('\u202egpj.exe\u2028\u200b'), '\\u202egpj.exe\\u2028\\u200b');
  assert.equal(visible('naïve 日本 ✓'), 'naïve 日本 ✓');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.match(visible(text), /^[^\p{Cc}\u2028\u2029\u202a-\u202e]*$/u);
      for (const line of table([{ name: text }], columns, { columns: 40, colour: false })) assert.ok(width(line) <= 40);
    }),
  );
});

test('shortens to the cells that there are', () => {
  assert.equal(shorten('abcdef', 6), 'abcdef');
  assert.equal(shorten('abcdefg', 6), 'abcde…');
  assert.equal(width('日本'), 4);
  assert.equal(shorten('日本語文字', 6), '日本…');
});

test('pairs line their values up', () => {
  assert.deepEqual(
    pairs([
      ['id', 'x'],
      ['active', true],
      ['note', 'a\nb'],
    ]),
    ['id      x', 'active  true', 'note    a\\x0ab'],
  );
});

test('progress in words', () => {
  assert.equal(byteCount(0), '0 B');
  assert.equal(byteCount(1023), '1023 B');
  assert.equal(byteCount(1536), '1.5 KiB');
  assert.equal(progressLine(1 << 20, undefined, 500), '1.0 MiB, 2.0 MiB/s');
  assert.equal(progressLine(1 << 29, 1 << 30, 1000), '512.0 MiB of 1.0 GiB (50 %), 512.0 MiB/s');
});
