// The flag editor's rules: which flags cover others, as the appliance decides it, and that editing loses nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { abilitiesText } from '../../src/console/flags/abilities.ts';
import {
  draftOf,
  draftProblems,
  emptyDraft,
  flagGroups,
  flagsOf,
  grantOf,
  namesRing,
  otherWarning,
  ringFlags,
  ringProblem,
  withOperation,
  withOther,
  withPlain,
  withRing,
} from '../../src/console/flags/draft.ts';
import { presetDraft, presets } from '../../src/console/flags/presets.ts';
import { flagTable, isKnownFlag, parseFlags, plainActions, ringActions } from '../../src/model/flags.ts';

const ring = fc.constantFrom('payroll', 'a.b', '*', 'Ledger');
const operation = fc.constantFrom('read', 'encrypt', 'rotate', '*', 'own');
const flag = fc.oneof(
  fc.constantFrom('*', 'keyring.*', 'asym.*', 'user.*', 'keyring.create', 'user.read', 'app.a.b', 'own', 'asset.x.*'),
  fc.tuple(fc.constantFrom('keyring', 'asym', 'key', 'Keyring'), ring, operation).map((parts) => parts.join('.')),
);
const flags = fc.dictionary(flag, fc.boolean(), { maxKeys: 6 });

test('the groups are the table, whole', () => {
  const listed = flagGroups.flatMap(({ resource, plain, ofRing }) => [
    ...plain.map(({ name }) => `${resource}.${name}`),
    ...ofRing.map(({ name }) => `${resource}.<ringname>.${name}`),
  ]);
  assert.deepEqual(new Set(['*', ...listed]), new Set(flagTable.map(({ flag }) => flag)));
  assert.deepEqual(
    flagGroups.map(({ title }) => title),
    [
      'Keyrings',
      'Asymmetric keyrings',
      'Managed keys',
      'Objects of KMIP',
      'Tang key pairs',
      'Assets',
      'Users',
      'Accounts',
      'API keys',
      'Approvals',
      'Activity',
      'The appliance',
    ],
  );
});

test('what goes through a draft means the same', () => {
  fc.assert(
    fc.property(flags, (given) => {
      const after = flagsOf(draftOf(given));
      assert.deepEqual(new Set(parseFlags(after).names), new Set(parseFlags(given).names));
    }),
  );
  const kept = { 'own.flag': true, 'user.read': false, 'keyring.payroll.*': true, 'keyring.a.b.read': true, '*': true };
  assert.deepEqual(flagsOf(draftOf(kept)), kept);
  assert.deepEqual(flagsOf(emptyDraft), {});
  const strange = Object.fromEntries([['__proto__', true]]);
  assert.deepEqual(flagsOf(draftOf(strange)), strange);
});

test('edits give the flags that they say', () => {
  let draft = withPlain(emptyDraft, 'user.read', true);
  draft = withRing(draft, 0, { resource: 'keyring', ring: ' Payroll ', operations: ['read'] });
  draft = withRing(draft, 0, withOperation(draft.rings[0] ?? assert.fail(), 'rotate', true));
  draft = withRing(draft, 1, { resource: 'asym', ring: '*', operations: ['*'] });
  draft = withOther(draft, 0, { name: 'shop.refund', granted: true });
  assert.deepEqual(flagsOf(draft), {
    'shop.refund': true,
    'user.read': true,
    'keyring.payroll.read': true,
    'keyring.payroll.rotate': true,
    'asym.*.*': true,
  });
  draft = withOther(withRing(withPlain(draft, 'user.read', false), 0, undefined), 0, undefined);
  assert.deepEqual(flagsOf(draft), { 'asym.*.*': true });
});

test('what cannot be sent is told, and what grants nothing is warned of', () => {
  const row = (name: string) => ({ resource: 'keyring', ring: name, operations: ['read'] });
  for (const name of ['', ' ', '-a', 'a b', 'ä', 'a'.repeat(129)]) assert.ok(ringProblem(row(name)), name);
  for (const name of ['*', 'a', 'A.b-c_d', 'a'.repeat(128)]) assert.equal(ringProblem(row(name)), undefined, name);
  assert.deepEqual(draftProblems({ ...emptyDraft, rings: [{ ...row(''), operations: [] }] }), []);
  assert.equal(draftProblems({ ...emptyDraft, rings: [row('')], others: [{ name: '', granted: true }] }).length, 2);
  assert.equal(draftProblems({ ...emptyDraft, others: [{ name: 'a'.repeat(257), granted: true }] }).length, 1);
  assert.match(otherWarning({ name: 'shop.refund', granted: true }) ?? '', /^Not one of/);
  assert.match(otherWarning({ name: 'user.read', granted: false }) ?? '', /^Kept as not granted/);
});

test('grants in words', () => {
  const words = [
    '*',
    'keyring.create',
    'keyring.payroll.rotate',
    'keyring.*.*',
    'user.*',
    'ASYM.a.b.read',
    'own.thing',
  ];
  assert.deepEqual(words.map(grantOf), [
    'everything',
    'make keyrings',
    'give the keyring payroll a new active key',
    'every operation on every keyring',
    'everything about Users',
    "read the keyring a.b's keys",
    undefined,
  ]);
});

test('flags that name the ring and wildcards count, what is not granted and other rings do not', () => {
  const flags = {
    'Keyring.Payroll.encrypt': true,
    'keyring.payroll.*': true,
    'keyring.*.read': true,
    'keyring.payroll.delete': false,
    'keyring.payroll.eu.read': true,
    'keyring.pay.read': true,
    'keyring.create': true,
    'user.read': true,
  };
  const found = ringFlags(flags, 'payroll');
  assert.deepEqual(found, ['keyring.*.read', 'keyring.payroll.*', 'keyring.payroll.encrypt']);
  assert.ok(namesRing(found, 'payroll'));
  assert.deepEqual(ringFlags(flags, 'payroll.eu'), ['keyring.*.read', 'keyring.payroll.eu.read']);
});

test('a wildcard alone does not name the ring', () => {
  const found = ringFlags({ '*': true, 'keyring.*': true, 'keyring.*.*': true }, 'payroll');
  assert.deepEqual(found, ['*', 'keyring.*', 'keyring.*.*']);
  assert.ok(!namesRing(found, 'payroll'));
});

const holder = (text: string): string => `The holder of these flags can ${text}.`;

test('what flags let their holder do, in a sentence', () => {
  const of = (...names: string[]): string => abilitiesText(Object.fromEntries(names.map((name) => [name, true])));
  assert.equal(of(), holder('do nothing here'));
  assert.equal(of('*', 'user.read'), holder('do everything, now and later, and grant it to others'));
  assert.equal(
    of('Keyring.Payroll.Encrypt', 'keyring.ledger.encrypt'),
    `${holder('encrypt with the keyrings payroll and ledger')} Nothing else.`,
  );
  assert.equal(
    of('keyring.*.decrypt', 'keyring.payroll.decrypt', 'keyring.payroll.read', 'keyring.list', 'asset.read'),
    `${holder('decrypt with every keyring, now and later; read the keyring payroll and assets; list keyrings')} Nothing else.`,
  );
  assert.equal(of('keyring.*', 'keyring.payroll.read'), `${holder('do everything with keyrings')} Nothing else.`);
  assert.equal(
    of(...['a', 'b', 'c', 'd', 'e', 'f'].map((ring) => `keyring.${ring}.*`)),
    `${holder('do everything with the keyrings a, b, c, d and 2 more')} Nothing else.`,
  );
  assert.equal(
    of('apikey.create', 'shop.refund', 'system.metrics', 'system.backup'),
    [
      holder('create API keys; read the metrics of and back up the appliance'),
      'Nothing else. They can grant others what they have themselves.',
      'One flag means something only to your own programs.',
    ].join(' '),
  );
  assert.equal(abilitiesText({ 'user.read': false, '<b>x</b>': false }), holder('do nothing here'));
  assert.equal(abilitiesText({ '*': true }, true), 'You can do everything, now and later, and grant it to others.');
  assert.equal(
    abilitiesText({ 'apikey.create': true }, true),
    'You can create API keys. Nothing else. You can grant others what you have yourself.',
  );
});

test('sets of flags that allow different things are never told in the same words', () => {
  const actions = [...plainActions].map((action) => [action] as const);
  const ofRings = [...ringActions].flatMap((action) =>
    ['payroll', 'a.b', 'ledger', null].map((ring) => [action, ring] as const),
  );
  const allowed = (given: Readonly<Record<string, boolean>>): string =>
    [...actions, ...ofRings].map(([action, ring]) => Number(parseFlags(given).allows(action, ring))).join('');
  const told = new Map<string, string>();
  fc.assert(
    fc.property(flags, (given) => {
      const text = abilitiesText(given);
      const what = allowed(given);
      assert.equal(told.get(text) ?? what, what, text);
      told.set(text, what);
      assert.equal(text.includes('can do nothing here'), !what.includes('1'), text);
    }),
    { numRuns: 2000 },
  );
});

test('presets fill the editor, keep the keyrings that were chosen, and say what they come to', () => {
  const of = (name: string) => presets.find((preset) => preset.name === name) ?? assert.fail(name);
  const flagNames = Object.keys;
  assert.deepEqual(flagNames(flagsOf(presetDraft(of('Encrypt only'), emptyDraft))), ['keyring..encrypt']);
  const all = draftOf({ 'keyring.*.read': true });
  assert.deepEqual(flagNames(flagsOf(presetDraft(of('Decrypt only'), all))), ['keyring..decrypt']);
  const before = draftOf({ 'keyring.payroll.read': true, 'keyring.ledger.*': true, 'user.*': true, own: true });
  const service = presetDraft(of('Service: encrypt and decrypt on chosen keyrings'), before);
  assert.deepEqual(flagNames(flagsOf(service)), [
    'own',
    'keyring.payroll.encrypt',
    'keyring.payroll.decrypt',
    'keyring.ledger.encrypt',
    'keyring.ledger.decrypt',
  ]);
  for (const name of ['Operator', 'Auditor']) {
    const all = flagsOf(presetDraft(of(name), emptyDraft));
    for (const flag of flagNames(all)) assert.ok(isKnownFlag(flag), flag);
    const { allowsSome } = parseFlags(all);
    for (const action of ['keyring.encrypt', 'keyring.decrypt', 'keyring.delete', 'apikey.create', 'user.update']) {
      assert.ok(!allowsSome(action), `${name}: ${action}`);
    }
  }
  const changes = /make|change|rotate|delete|invite|back up|seal/;
  assert.doesNotMatch(abilitiesText(flagsOf(presetDraft(of('Auditor'), emptyDraft))), changes);
  assert.match(
    abilitiesText(flagsOf(presetDraft(of('Operator'), emptyDraft))),
    /rotate and change the settings of every/,
  );
});
