// The checklist of a first run: which steps whom concern, what is known to be done, and what a browser keeps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstSteps, isUnused, keepMark, keptMarks, type Mark } from '../../src/console/overview/first-steps.ts';
import { parseFlags } from '../../src/model/flags.ts';

type Overview = Parameters<typeof firstSteps>[0];

const all = parseFlags({ '*': true });
const backups = { configured: null, running: false, lastVerified: null, lastFailure: null };
const fresh: Overview = {
  tenant: 'default',
  readiness: { ready: true, appliance: 'b0cb9df0c232d99d18e7a861bcc6403f' },
  keyrings: { rings: [], more: false },
  users: 1,
  secondFactor: false,
  backups,
};
const marked = (...names: Mark[]): ReadonlySet<Mark> => new Set(names);
const doneOf = (found: Overview, marks = marked()): string[] =>
  firstSteps(found, all, marks)
    .filter(({ isDone }) => isDone)
    .map(({ name }) => name);

test('at first every step is open, each with a page or a command', () => {
  const steps = firstSteps(fresh, all, marked());
  assert.deepEqual(
    steps.map(({ name, by }) => [name, 'page' in by ? by.page : by.command]),
    [
      ['masterKey', 'kms recovery-kit -o kit.txt'],
      ['keyring', 'newKeyring'],
      ['secondFactor', 'me'],
      ['backup', 'kms serve --backup-to /mnt/backups'],
      ['colleague', 'newUser'],
    ],
  );
  assert.deepEqual(doneOf(fresh), []);
});

test('a step is done when the appliance knows it, or when the person says so', () => {
  const configured = { directory: '/b', schedule: '0 3 * * *', keep: 7, nextAt: null };
  const lastVerified = { at: '2026-01-02T03:00:00.000Z', file: '/b/x', bytes: 1 };
  assert.deepEqual(doneOf(fresh, marked('masterKey')), ['masterKey']);
  assert.deepEqual(doneOf({ ...fresh, keyrings: { rings: [], more: true } }), ['keyring']);
  assert.deepEqual(doneOf({ ...fresh, secondFactor: true }), ['secondFactor']);
  assert.deepEqual(doneOf({ ...fresh, backups: { ...backups, configured } }), ['backup']);
  assert.deepEqual(doneOf({ ...fresh, backups: { ...backups, lastVerified } }), ['backup']);
  const shipping = { ageSeconds: 1, ok: true };
  assert.deepEqual(doneOf({ ...fresh, readiness: { ready: true, shipping } }), ['backup']);
  assert.deepEqual(doneOf({ ...fresh, users: 2 }), ['colleague']);
});

test('people see the steps that they can take, and those who set up nothing see none', () => {
  const names = (found: Overview, ...flags: string[]): string[] =>
    firstSteps(found, parseFlags(Object.fromEntries(flags.map((flag) => [flag, true]))), marked()).map(
      ({ name }) => name,
    );
  const { backups: _, ...tenant } = fresh;
  assert.deepEqual(names(tenant, 'keyring.list', 'keyring.create'), ['keyring', 'secondFactor']);
  assert.deepEqual(names(tenant, 'keyring.list', 'user.read'), []);
  const { secondFactor: __, ...byKey } = tenant;
  assert.deepEqual(names(byKey, '*'), ['keyring', 'colleague'], 'an API key has no second factor');
});

test('nothing was used: no keyring, no encrypt, no decrypt; what is not known is not unused', () => {
  const counts = { from: 0, bucket: 1, denials: [3], cut: [], deniedLastHour: 3, deniedBefore: 0, countedBefore: 0 };
  const use = { ...counts, encrypts: [0], decrypts: [0] };
  assert.equal(isUnused({ ...fresh, use }), true);
  assert.equal(isUnused({ ...fresh, use: { ...use, decrypts: [1] } }), false);
  assert.equal(isUnused({ ...fresh, use, keyrings: { rings: [], more: true } }), false);
  assert.equal(isUnused(fresh), false);
});

test('marks are kept for each appliance, and what else is in the storage is no mark', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  };
  assert.deepEqual([...keptMarks(storage, 'a')], []);
  keepMark(storage, 'a', 'masterKey');
  assert.deepEqual([...keepMark(storage, 'a', 'hidden')], ['masterKey', 'hidden']);
  assert.deepEqual([...keptMarks(storage, 'a')], ['masterKey', 'hidden']);
  assert.deepEqual([...keptMarks(storage, 'b')], []);
  for (const [name] of kept) kept.set(name, 'x "hidden"');
  assert.deepEqual([...keptMarks(storage, 'a')], []);
});
