// Managed keys in the words and choices of the console.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dependent } from '../../src/api/managed-keys.ts';
import {
  callersOf,
  keyPurposes,
  recentCallers,
  rotationText,
  stateWords,
  typesFor,
  usesFor,
  useText,
  usualType,
  versionWords,
} from '../../src/console/keyrings/managed-key-words.ts';
import { keyStates } from '../../src/model/key-states.ts';
import { keyTypes, keyUses, usesProblem } from '../../src/model/key-types.ts';

test('every type is offered for something, and every choice is one that a key can have', () => {
  const offered = new Set(keyPurposes.flatMap(({ value }) => typesFor(value)));
  assert.deepEqual([...offered].sort(), [...keyTypes].sort());
  for (const { value } of keyPurposes) {
    assert.ok(typesFor(value).includes(usualType(value)), value);
    for (const type of typesFor(value)) {
      const uses = usesFor(value, type) ?? assert.fail(type);
      assert.equal(usesProblem(type, uses.usual), undefined);
      assert.equal(usesProblem(type, uses.possible), undefined, `all that is offered for ${type} goes together`);
    }
  }
  assert.equal(usesFor('mac', 'ed25519'), undefined);
  assert.deepEqual(usesFor('encrypt', 'rsa-2048')?.usual, ['encrypt', 'decrypt']);
  assert.deepEqual(usesFor('sign', 'rsa-2048')?.usual, ['sign', 'verify']);
});

test('a rotation is told in the words of what the key is for', () => {
  assert.equal(
    rotationText(['sign', 'verify']),
    'It gets a new version, which signs from now on. What was signed before can still be verified.',
  );
  assert.match(rotationText(['mac']), /makes MACs from now on\. What was given a MAC before can still be verified\.$/);
  assert.match(rotationText(['encrypt', 'decrypt']), /encrypts .* What was encrypted before can still be decrypted\.$/);
  assert.match(rotationText(['wrap', 'unwrap']), /wraps keys .* What was wrapped before can still be unwrapped\.$/);
  assert.equal(rotationText(['export']), 'It gets a new version. The versions before stay.');
});

test('every use and state has words', () => {
  for (const use of keyUses) assert.match(useText(use), /^[A-Z]/);
  for (const state of keyStates) {
    const { label, means } = stateWords(state);
    assert.match(label, /^[a-z]/);
    assert.match(means, /^It[s ].*\.$/);
  }
});

test('the minimum versions are named by what the key is for', () => {
  assert.deepEqual(versionWords(['encrypt', 'decrypt', 'wrap']), { reads: 'Decrypts', makes: 'Encrypts' });
  assert.deepEqual(versionWords(['mac', 'verify']), { reads: 'Verifies', makes: 'Makes MACs' });
  assert.deepEqual(versionWords(['sign', 'verify']), { reads: 'Verifies', makes: 'Signs' });
  assert.deepEqual(versionWords(['wrap', 'unwrap']), { reads: 'Unwraps', makes: 'Wraps' });
  assert.equal(versionWords(['export']), undefined);
  assert.equal(versionWords(['derive']), undefined);
});

test('who used some of the versions is named once, with the latest use of those', () => {
  const use = (caller: string, version: number, day: number): Dependent => ({
    caller,
    version,
    lastUsedAt: `2026-01-0${day}T12:00:00.000Z`,
    operation: 'decrypt',
    dialect: 'native',
    count: 1,
  });
  const uses = [use('apik_a', 3, 9), use('apik_a', 2, 5), use('apik_b', 2, 7), use('apik_b', 1, 8)];
  const named = (first: number, end: number) =>
    callersOf(uses, first, end).map(({ caller, version }) => [caller, version]);
  assert.deepEqual(named(1, 3), [
    ['apik_b', 1],
    ['apik_a', 2],
  ]);
  assert.deepEqual(named(2, 3), [
    ['apik_b', 2],
    ['apik_a', 2],
  ]);
  assert.deepEqual(named(4, 9), []);
});

test('who used a key in the last 24 hours is named once, with the latest use', () => {
  const now = Date.parse('2026-01-03T12:00:00.000Z');
  const use = (caller: string, lastUsedAt: string, operation = 'encrypt'): Dependent => ({
    caller,
    lastUsedAt,
    operation,
    dialect: 'vault',
    version: 1,
    count: 1,
  });
  const recent = recentCallers(
    [
      use('apik_a', '2026-01-03T11:00:00.000Z', 'decrypt'),
      use('apik_a', '2026-01-03T10:00:00.000Z'),
      use('apik_b', '2026-01-03T11:30:00.000Z'),
      use('apik_c', '2026-01-02T11:59:59.000Z'),
    ],
    now,
  );
  assert.deepEqual(
    recent.map(({ caller, operation }) => [caller, operation]),
    [
      ['apik_b', 'encrypt'],
      ['apik_a', 'decrypt'],
    ],
  );
});
