// Tables on a terminal: column widths, shortening, wide characters, and text from elsewhere that must not control the
// terminal.
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { byteCount, progressLine } from '../../src/cli/streams.ts';
import { pairs, table, tableWriter } from '../../src/cli/table.ts';
import { inShort, readableTime, shorten, visible, width, wrapped } from '../../src/cli/text.ts';

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

const id = 'apik_01jz4b8m6q3v9x2c5d7f8g9h0k';
const wideColumns = [
  { title: 'note', value: (row: { note: string; count: number }) => row.note },
  { title: 'count', value: (row: { count: number }) => row.count },
  { title: 'id', value: () => id, whole: true },
  { title: 'created', value: () => '2026-01-02T03:04:05.678Z', whole: true, spare: true },
] as const;

for (const [columns, lines] of [
  [
    120,
    [
      'NOTE                                      COUNT   ID                               CREATED',
      `${'x'.repeat(40)}  123456  ${id}  2026-01-02T03:04:05.678Z`,
    ],
  ],
  [
    80,
    [
      'NOTE           COUNT   ID                               CREATED',
      `${'x'.repeat(12)}…  123456  ${id}  2026-01-02T03:04:05.678Z`,
    ],
  ],
  [78, [`NOTE${' '.repeat(35)}COUNT   ID`, `${'x'.repeat(36)}…  123456  ${id}`]],
  [50, ['NOTE       COUNT   ID', `xxxxxxxx…  123456  ${id}`]],
  [20, ['NOTE  COUNT   ID', `xxx…  123456  ${id}`]],
  [
    undefined,
    [
      `NOTE${' '.repeat(38)}COUNT   ID${' '.repeat(31)}CREATED`,
      `${'x'.repeat(40)}  123456  ${id}  2026-01-02T03:04:05.678Z`,
    ],
  ],
] as const) {
  test(`in ${columns ?? 'any number of'} columns neither an id nor a number is cut, and what is spare goes first`, () => {
    const rows = [{ note: 'x'.repeat(40), count: 123456 }];
    assert.deepEqual(table(rows, wideColumns, { columns, colour: false }), lines);
  });
}

test('a name that commands take is cut only where neither leaving out what is spare nor further lines are enough', () => {
  const named = [{ title: 'name', value: () => 'payroll-of-the-whole-group', name: true }, ...wideColumns] as const;
  const lines = (columns: number): string[] =>
    table([{ note: 'x'.repeat(12), count: 1 }], named.toSpliced(2, 1), { columns, colour: false });
  assert.equal(lines(100)[1], `payroll-of-the-whole-group  ${'x'.repeat(12)}  ${id}  2026-01-02T03:04:05.678Z`);
  assert.equal(lines(80)[1], `payroll-of-the-whole-group  ${'x'.repeat(12)}  ${id}`);
  assert.deepEqual(lines(60).slice(1), [`payroll-of-    ${'x'.repeat(12)}  ${id}`, 'the-whole-', 'group']);
  assert.equal(lines(50)[1], `payroll-  xxxxxx…  ${id}`);
  assert.equal(lines(40)[1], `pay…  xxx…  ${id}`, 'in a few cells parts could not be read');
});

test('on a terminal of the usual width a name without room goes on in the next line', () => {
  const action = { title: 'action', value: () => 'keyring.delete', name: true } as const;
  const ring = (name: string) => ({ title: 'ring', value: () => name, name: true, isRed: () => true }) as const;
  const long = 'payroll-of-the-whole-group-in-all-of-its-countries';
  const lines = (name: string, colour = false): string[] =>
    table([{ note: 'x'.repeat(12), count: 1 }], [action, ring(name), ...wideColumns], { columns: 80, colour });
  assert.deepEqual(lines(long), [
    'ACTION        RING          NOTE          COUNT  ID',
    `keyring.      payroll-of-   xxxxxxxxxxxx  1      ${id}`,
    'delete        the-whole-',
    '              group-in-',
    '              all-of-its-',
    '              countries',
  ]);
  for (const name of [long, 'x'.repeat(200), '日本'.repeat(40)]) {
    const shown = lines(name);
    for (const line of shown) assert.ok(width(line) <= 80, line);
    assert.equal(
      shown
        .slice(1)
        .map((line) => line.slice(14).split(/ {2,}/)[0])
        .join(''),
      name,
    );
    assert.equal(lines(name, true).filter((line) => line.includes('\x1b[31m')).length, shown.length - 1);
  }
});

for (const [text, cells, parts] of [
  ['maria Hohenzollern-Sigmaringen', 14, ['maria', 'Hohenzollern-', 'Sigmaringen']],
  ['maria Hohenzollern-Sigmaringen', 19, ['maria Hohenzollern-', 'Sigmaringen']],
  ['maria Hohenzollernsigmaringen', 14, ['maria Hohenzol', 'lernsigmaringe', 'n']],
  ['hohenzollern Maria', 12, ['hohenzollern', 'Maria']],
  ['ab-cd', 5, ['ab-cd']],
  ['payments-db', 9, ['payments-', 'db']],
] as const) {
  test(`in ${cells} cells "${text}" is broken between its words where they fit`, () =>
    assert.deepEqual(wrapped(text, cells), parts));
}

test('no part of a name is wider than its column, no word that fits is broken, and nothing is lost', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '日', '-', '.', ' '), maxLength: 40 });
  fc.assert(
    fc.property(name, fc.integer({ min: 8, max: 30 }), (text, cells) => {
      const parts = wrapped(text, cells);
      if (width(text) > cells) for (const part of parts) assert.ok(width(part) <= cells, part);
      assert.equal(parts.join('').replaceAll(' ', ''), text.replaceAll(' ', ''));
      for (const word of text.split(/[-. ]+/).filter((each) => width(each) < cells)) {
        assert.ok(
          parts.some((part) => part.includes(word)),
          word,
        );
      }
    }),
  );
});

const now = Date.parse('2026-06-01T12:00:00Z');

for (const [time, text] of [
  ['2026-06-01T11:59:55.000Z', 'just now'],
  ['2026-06-01T12:00:05.000Z', 'just now'],
  ['2026-06-01T11:59:30.000Z', '30 s ago'],
  ['2026-06-01T11:57:00.000Z', '3 min ago'],
  ['2026-06-01T10:01:00.000Z', '1 h ago'],
  ['2026-05-31T12:00:01.000Z', '23 h ago'],
  ['2026-05-31T12:00:00.000Z', '1 day ago'],
  ['2026-05-22T12:00:00.000Z', '10 days ago'],
  ['2026-01-15T12:00:00.000Z', '2026-01-15'],
  ['2026-06-01T12:30:00.000Z', 'in 30 min'],
  ['2026-06-30T13:00:00.000Z', 'in 29 days'],
  ['2029-06-30T12:00:00.000Z', '2029-06-30'],
  ['none since 2026-05-31T12:00:00.000Z', 'none since 1 day ago'],
  ['never', 'never'],
  [`${id} user_01jz4b8m6q3v9x2c5d7f8g9h1m`, 'apik_…8g9h0k user_…8g9h1m'],
  ['payroll_2026', 'payroll_2026'],
] as const) {
  test(`in short, "${time}" is "${text}"`, () => assert.equal(inShort(time, { now }), text));
}

test('a value that is a time is a local one with its age; others stay as they are', () => {
  const local = (at: string): string => {
    const date = new Date(at);
    const two = (number: number): string => String(number).padStart(2, '0');
    const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  };
  for (const [at, distance] of [
    ['2026-06-01T11:57:00.000Z', ' (3 min ago)'],
    ['2026-06-01T12:30:00Z', ' (in 30 min)'],
    ['2026-01-15T12:00:00.000Z', ''],
  ] as const) {
    assert.equal(readableTime(at, now), `${local(at)}${distance}`);
  }
  for (const text of ['never', '{"at":"2026-06-01T11:57:00.000Z"}', 'since 2026-06-01T11:57:00.000Z']) {
    assert.equal(readableTime(text, now), text);
  }
});

test('ids and times are in short where the style says so, and never cut', () => {
  const columns = [
    { title: 'name', value: () => 'payroll', name: true },
    { title: 'id', value: () => id, short: true },
    { title: 'made', value: () => '2026-06-01T11:57:00.000Z', short: true },
  ] as const;
  const style = { columns: 20, colour: false };
  assert.deepEqual(table([1], columns, { ...style, short: { now } }), [
    'NAME  ID            MADE',
    'pay…  apik_…8g9h0k  3 min ago',
  ]);
  assert.equal(table([1], columns, { ...style, columns: undefined })[1], `payroll  ${id}  2026-06-01T11:57:00.000Z`);
});

test('a red cell is red only with colours, and lines up', () => {
  const columns = [
    { title: 'verdict', value: (row: string) => row, isRed: (row: string) => row === 'denied' },
    { title: 'by', value: () => 'ada' },
  ];
  const rows = ['denied', 'granted'];
  assert.deepEqual(table(rows, columns, { columns: 80, colour: true }).slice(1), [
    '\x1b[31mdenied\x1b[0m   ada',
    'granted  ada',
  ]);
  assert.deepEqual(table(rows, columns, { columns: 80, colour: false }).slice(1), ['denied   ada', 'granted  ada']);
});

test('the number of columns without room is told when it changes', () => {
  const told: number[] = [];
  const onHidden = (count: number): void => void told.push(count);
  const add = tableWriter(wideColumns, { columns: 60, colour: false, onHidden });
  add([{ note: 'x'.repeat(12), count: 1 }]);
  add([{ note: 'x'.repeat(12), count: 1 }]);
  assert.deepEqual(told, [1]);
});

test('a table that grows has its titles once and never gets narrower', () => {
  const add = tableWriter(columns, { columns: undefined, colour: false });
  assert.deepEqual(add([]), ['NAME  LENGTH']);
  assert.deepEqual(add([{ name: 'payroll' }]), ['payroll  7']);
  assert.deepEqual(add([{ name: 'a' }]), ['a        1']);
  assert.deepEqual(tableWriter(columns, { columns: undefined, colour: false }, [9])([]), ['NAME       LENGTH']);
});

test('a great many rows are no trouble', () => {
  const rows = Array.from({ length: 300_000 }, (_, n) => ({ name: String(n) }));
  assert.equal(table(rows, columns, { columns: 80, colour: false }).length, 300_001);
});

for (const [text, cells] of [
  ['plain', 5],
  ['naïve', 5],
  ['nai\u0308ve', 5],
  ['日本', 4],
  ['한국', 4],
  ['\u1112\u1161\u11ab', 2],
  ['ｆｕｌｌ', 8],
  ['🔑', 2],
  ['👍🏽', 2],
  ['🇨🇭', 2],
  ['❤', 1],
  ['❤\ufe0f', 2],
  ['1\ufe0f\u20e3', 2],
  ['✓', 1],
  ['é́́', 1],
  ['', 0],
] as const) {
  test(`"${text}" takes ${cells} cells`, () => assert.equal(width(text), cells));
}

test('what is one sign to the eye is not cut in two', () => {
  assert.equal(shorten('ab👍🏽cd', 4), 'ab…');
  assert.equal(shorten('ab👍🏽cd', 5), 'ab👍🏽…');
  assert.equal(shorten('e\u0301e\u0301e\u0301', 2), 'e\u0301…');
});

test('no text from elsewhere can touch the terminal', () => {
  assert.equal(visible('a\x1b[2Jb\r\n\t\x7f\x9b'), 'a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f\\x9b');
  assert.equal(visible('\u202egpj.exe\u2028\u200b'), '\\u202egpj.exe\\u2028\\u200b');
  assert.equal(visible('a\u{e0041}b'), 'a\\u{e0041}b');
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
  assert.equal(progressLine(1 << 29, 1 << 30, 1000), '512.0 MiB of 1.0 GiB (50 %), 512.0 MiB/s, 1 s left');
  assert.equal(progressLine(1 << 20, 1 << 30, 1000), '1.0 MiB of 1.0 GiB (0 %), 1.0 MiB/s, 17 min left');
  assert.match(progressLine(1 << 20, 2 ** 33, 1000), /, 2 h 17 min left$/);
  assert.equal(progressLine(1 << 20, 1 << 20, 1000), '1.0 MiB of 1.0 MiB (100 %), 1.0 MiB/s');
  const total = { count: 2000, noun: 'records' };
  assert.equal(progressLine(500, total, 1000), '500 of 2000 records (25 %), 500/s, 3 s left');
  assert.equal(progressLine(2001, total, 1000), '2001 of 2000 records (100 %), 2001/s');
  assert.equal(progressLine(0, { ...total, count: 0 }, 1000), '0 of 0 records (100 %), 0/s');
});
