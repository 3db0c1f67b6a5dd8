// How lists are searched, filtered and sorted; times relative to now; and the palette's actions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isExpiring } from '../../src/console/apikeys/key-change.ts';
import { otherWarning, unknownRing, unknownRings } from '../../src/console/flags/draft.ts';
import { actionsFor, generalActions } from '../../src/console/palette-actions.ts';
import type { PaletteEntry } from '../../src/console/palette-entries.ts';
import {
  arranged,
  arrangementOf,
  compareTexts,
  nextSort,
  queryOf,
  type Shape,
  toggled,
} from '../../src/console/parts/arranging.ts';
import { keptIn } from '../../src/console/parts/kept.ts';
import { countedText, exactText, relativeText } from '../../src/console/text.ts';
import { parseFlags } from '../../src/model/flags.ts';

interface Item {
  readonly name: string;
  readonly owner: string;
  readonly isOn: boolean;
  readonly used: number | null;
}

const items: readonly Item[] = [
  { name: 'key-10', owner: 'ada', isOn: true, used: 5 },
  { name: 'key-9', owner: 'bob', isOn: false, used: null },
  { name: 'Batch', owner: 'ada', isOn: true, used: 9 },
];
const shape: Shape<Item> = {
  textsOf: ({ name, owner }) => [name, owner],
  nameOf: ({ name }) => name,
  chips: [
    { id: 'on', label: 'On', group: 'state', has: ({ isOn }) => isOn },
    { id: 'off', label: 'Off', group: 'state', has: ({ isOn }) => !isOn },
    { id: 'unused', label: 'Unused', has: ({ used }) => used === null },
  ],
  sorts: new Map<string, (item: Item) => string | number | null>([
    ['name', ({ name }) => name],
    ['used', ({ used }) => used],
  ]),
  compare: (one, other) => compareTexts(one.name, other.name),
};
const names = (address: string): string[] =>
  arranged(items, shape, arrangementOf(new URLSearchParams(address)), 0).map(({ name }) => name);

test('what bears the name that is searched for comes before what has it elsewhere', () => {
  const made: readonly Item[] = ['alpha', 'root of all', 'ROOT', 'zeta'].map((name) => ({
    name,
    owner: 'root',
    isOn: true,
    used: null,
  }));
  const found = (address: string) =>
    arranged(made, shape, arrangementOf(new URLSearchParams(address)), 0).map(({ name }) => name);
  assert.deepEqual(found('q=root'), ['ROOT', 'root of all', 'alpha', 'zeta']);
  assert.deepEqual(found('q=all+root'), ['root of all']);
  assert.deepEqual(found('q=root&sort=name'), ['alpha', 'ROOT', 'root of all', 'zeta'], 'unless it is sorted');
});

test('every word typed has to be somewhere; chips of a group are alternatives, groups add up', () => {
  assert.deepEqual(names(''), ['Batch', 'key-9', 'key-10']);
  assert.deepEqual(names('q=KEY'), ['key-9', 'key-10']);
  assert.deepEqual(names('q=ada+key'), ['key-10']);
  assert.deepEqual(names('q=%20'), ['Batch', 'key-9', 'key-10']);
  assert.deepEqual(names('is=on'), ['Batch', 'key-10']);
  assert.deepEqual(names('is=on,off'), ['Batch', 'key-9', 'key-10']);
  assert.deepEqual(names('is=on,off,unused'), ['key-9']);
  assert.deepEqual(names('is=on,unused'), []);
  assert.deepEqual(names('is=no-such-chip'), ['Batch', 'key-9', 'key-10']);
  assert.deepEqual(names('q=key&is=on'), ['key-10'], 'the search and the chips together');
});

test('numbers in names count as numbers, and what is missing comes last either way', () => {
  assert.deepEqual(names('sort=name'), ['Batch', 'key-9', 'key-10']);
  assert.deepEqual(names('sort=-name'), ['key-10', 'key-9', 'Batch']);
  assert.deepEqual(names('sort=used'), ['key-10', 'Batch', 'key-9']);
  assert.deepEqual(names('sort=-used'), ['Batch', 'key-10', 'key-9']);
  assert.deepEqual(names('sort=nothing'), ['Batch', 'key-9', 'key-10']);
});

test('an arrangement goes into the address and back', () => {
  for (const address of ['', 'q=a+b', 'is=on,off', 'sort=-used', 'q=x&is=on&sort=name']) {
    const given = Object.entries(queryOf(arrangementOf(new URLSearchParams(address)))).filter(([, value]) => value);
    const text = new URLSearchParams(given as [string, string][]).toString();
    assert.equal(decodeURIComponent(text), address);
  }
  assert.deepEqual(
    [nextSort(undefined, 'a'), nextSort({ by: 'a', isDown: false }, 'a'), nextSort({ by: 'a', isDown: true }, 'a')],
    [{ by: 'a', isDown: false }, { by: 'a', isDown: true }, undefined],
  );
  assert.deepEqual(nextSort({ by: 'a', isDown: true }, 'b'), { by: 'b', isDown: false });
  assert.deepEqual([toggled(['a'], 'b'), toggled(['a', 'b'], 'a')], [['a', 'b'], ['b']]);
});

test('what one session keeps, another does not see', () => {
  const [mine, other] = [{}, {}];
  keptIn<number>(mine, 'rows').set(3);
  assert.deepEqual(
    [keptIn(mine, 'rows').get(), keptIn(mine, 'else').get(), keptIn(other, 'rows').get()],
    [3, undefined, undefined],
  );
});

test('times are told relative to now, and far ones by their date', () => {
  const now = Date.parse('2026-07-01T12:00:00Z');
  const told = (seconds: number): string => relativeText(new Date(now + seconds * 1000), now);
  assert.deepEqual([0, -59, -60, -3_599, -3_600, -86_400, -3 * 86_400].map(told), [
    'just now',
    'just now',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '1 d ago',
    '3 d ago',
  ]);
  assert.deepEqual([30, 180, 86_400, 29 * 86_400].map(told), ['in a moment', 'in 3 min', 'in 1 d', 'in 29 d']);
  assert.match(told(-60 * 86_400), /^2026-05-0[12]$/);
  assert.match(exactText(new Date(now)), /2026-07-01 12:00:00 UTC\)?$/);
  assert.deepEqual([countedText(1, 'key'), countedText(2000, 'key')], ['1 key', '2,000 keys']);
});

test('an active key that ends within a month is expiring', () => {
  const day = 86_400_000;
  assert.equal(isExpiring({ active: true, expiresAt: 29 * day }, 0), true);
  assert.equal(isExpiring({ active: true, expiresAt: 31 * day }, 0), false);
  assert.equal(isExpiring({ active: true, expiresAt: null }, 0), false);
  assert.equal(isExpiring({ active: false, expiresAt: day }, 0), false);
  assert.equal(isExpiring({ active: true, expiresAt: 1 }, 2), false, 'it has expired');
});

test('a keyring that does not exist is doubted, if the names are known', () => {
  const row = { resource: 'keyring', ring: ' Pay ', operations: [] };
  const keyrings = (...names: string[]) => new Map([['keyring', names]]);
  assert.equal(
    unknownRing(row, keyrings('payroll')),
    'There is no keyring called pay yet: these flags count once there is one.',
  );
  assert.match(unknownRing({ ...row, ring: 'payrol' }, keyrings('x', 'payroll')) ?? '', /Did you mean payroll\?$/);
  assert.match(unknownRing(row, keyrings()) ?? '', /no keyring called pay yet/, 'there is none at all');
  assert.equal(unknownRing(row, keyrings('pay')), undefined);
  assert.equal(unknownRing(row, new Map()), undefined);
  assert.equal(unknownRing({ ...row, ring: '*' }, keyrings('payroll')), undefined);
  assert.equal(unknownRing({ ...row, ring: '' }, keyrings('payroll')), undefined);
  assert.equal(unknownRing({ ...row, resource: 'asym' }, keyrings('payroll')), undefined);
  const managed = new Map([['key', ['vault-unseal']]]);
  const flag = { name: 'key.vault-unsea.sign', granted: true };
  const text = 'There is no managed key called vault-unsea yet: these flags count once there is one.';
  assert.equal(otherWarning(flag, managed), `${text} Did you mean vault-unseal?`);
  assert.equal(otherWarning({ ...flag, name: 'key.vault-unseal.sign' }, managed), undefined);
  assert.deepEqual(unknownRings({ 'keyring.pay.read': true, 'key.vault-unsea.sign': true, own: true }, managed), [
    `${text} Did you mean vault-unseal?`,
  ]);
});

test('the palette offers what its user may do, once its verb is typed', () => {
  const entries: PaletteEntry[] = [
    { kind: 'Keyring', name: 'Payroll', also: '', page: 'keyring', params: { name: 'payroll' } },
    { kind: 'API key', name: 'nightly', also: 'apik_a', page: 'apikey', params: { id: 'apik_a' } },
    { kind: 'Page', name: 'About', also: '', page: 'about' },
  ];
  const of = (typed: string, ...flags: string[]): string[] =>
    actionsFor(entries, typed, parseFlags(Object.fromEntries(flags.map((flag) => [flag, true])))).map(
      ({ name }) => name,
    );
  assert.deepEqual(of('rotate pay', '*'), ['Rotate keyring Payroll…']);
  assert.deepEqual(of('dis', '*'), ['Disable API key nightly…']);
  assert.deepEqual(of('payroll', '*'), []);
  assert.deepEqual(of('r', '*'), []);
  assert.deepEqual(of('rotate', 'keyring.payroll.rotate'), ['Rotate keyring Payroll…']);
  assert.deepEqual([of('rotate', 'keyring.other.rotate'), of('disable', 'apikey.read')], [[], []]);
  const general = (flags: Record<string, boolean>) =>
    generalActions(parseFlags(flags)).map(({ command }) => command.do);
  assert.deepEqual(general({}), ['guides', 'theme', 'theme', 'theme']);
  assert.deepEqual(general({ 'system.backup': true }), ['backup', 'guides', 'theme', 'theme', 'theme']);
});
