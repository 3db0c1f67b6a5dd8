// The flag editor's rules: what covers what, as the appliance decides it, and that editing loses nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
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
import { flagTable, parseFlags } from '../../src/model/flags.ts';

const ring = fc.constantFrom('payroll', 'a.b', '*', 'Ledger');
const operation = fc.constantFrom('read', 'encrypt', 'rotate', '*', 'own');
const flag = fc.oneof(
  fc.constantFrom('*', 'keyring.*', 'asym.*', 'user.*', 'keyring.create', 'user.read', 'app.a.b', 'own', 'asset.x.*'),
  fc.tuple(fc.constantFrom('keyring', 'asym', 'Keyring'), ring, operation).map((parts) => parts.join('.')),
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
    ['KeyRings', 'Asym KeyRings', 'Assets', 'Users', 'Accounts', 'API keys', 'Activity', 'The appliance'],
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
    'make KeyRings',
    'give the ring payroll a new active key',
    'every operation on every ring',
    'everything about Users',
    "read the ring a.b's keys",
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
