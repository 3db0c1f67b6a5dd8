// Password rules: counts by Unicode category, each rule by itself, and the limit of 1,024 bytes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { passwordRules } from '../../src/client/password-rules.ts';
import { isHashable, judgePassword } from '../../src/crypto/password-rules.ts';

/** Length, upper case, lower case, special, digits. */
function counts(password: string): number[] {
  const { details } = judgePassword(password);
  return [
    details.newPasswordLength,
    details.newPasswordUppercase,
    details.newPasswordLowercase,
    details.newPasswordSpecialChar,
    details.newPasswordNumber,
  ];
}

test('counts code points by Unicode category', () => {
  const table: [string, number[]][] = [
    ['', [0, 0, 0, 0, 0]],
    ['Abcdef1!', [8, 1, 5, 1, 1]],
    ['ÄÖüß', [4, 2, 2, 0, 0]],
    ['ДЖдж', [4, 2, 2, 0, 0]],
    ['٣४9', [3, 0, 0, 0, 3]],
    ['漢字', [2, 0, 0, 0, 0]],
    ['🗝🔐', [2, 0, 0, 2, 0]],
    ['𝐀𝐚', [2, 1, 1, 0, 0]],
    [' \t_-', [4, 0, 0, 4, 0]],
    ['ǅ', [1, 0, 0, 0, 0]],
  ];
  for (const [password, expected] of table) assert.deepEqual(counts(password), expected, JSON.stringify(password));
});

test('each rule alone decides', () => {
  const table: [string, boolean][] = [
    ['Abcdef1!', true],
    ['Abcde1!', false],
    ['abcdef1!', false],
    ['ABCDEF1!', false],
    ['Abcdefg!', false],
    ['Abcdefg1', false],
    ['Äbcdef٣ ', true],
    ['Aa1🗝🗝🗝🗝', false],
    ['Aa1🗝🗝🗝🗝🗝', true],
  ];
  for (const [password, valid] of table) assert.equal(judgePassword(password).isValid, valid, password);
});

test('the verdict has the minima and the counts', () => {
  assert.deepEqual(judgePassword('Abc'), {
    isValid: false,
    details: {
      minLength: 8,
      newPasswordLength: 3,
      minUppercase: 1,
      newPasswordUppercase: 1,
      minLowercase: 1,
      newPasswordLowercase: 2,
      minSpecialChar: 1,
      newPasswordSpecialChar: 0,
      minNumber: 1,
      newPasswordNumber: 0,
    },
  });
});

test('1,024 bytes of UTF-8 are the most', () => {
  const start = 'Aa1!';
  assert.equal(judgePassword(start + 'x'.repeat(1020)).isValid, true);
  assert.equal(judgePassword(start + 'x'.repeat(1021)).isValid, false);
  assert.equal(judgePassword(start + 'é'.repeat(510)).isValid, true);
  assert.equal(judgePassword(`${start}${'é'.repeat(510)}x`).isValid, false);
});

test('what is no Unicode is no password', () => {
  assert.equal(isHashable('Abcdef1!\ud800'), false);
  assert.equal(judgePassword('Abcdef1!\ud800').isValid, false);
});

test('the counts add up, letters without case aside', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (password) => {
      const [length = 0, ...kinds] = counts(password);
      const caseless = [...password].filter((each) => /\p{L}/u.test(each) && !/[\p{Lu}\p{Ll}]/u.test(each)).length;
      return length === [...password].length && length === caseless + kinds.reduce((sum, each) => sum + each, 0);
    }),
  );
});

test('rule by rule, with what there is of each', () => {
  const { rules, isValid } = passwordRules('Äbc٣');
  assert.equal(isValid, false);
  assert.deepEqual(
    rules.map(({ name, least, has, met }) => [name, least, has, met]),
    [
      ['length', 8, 4, false],
      ['uppercase', 1, 1, true],
      ['lowercase', 1, 2, true],
      ['number', 1, 1, true],
      ['special', 1, 0, false],
    ],
  );
});

test('a password is valid exactly when it meets every rule and can be hashed', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 12 }), (password) => {
      const { rules, isValid, isTooLong } = passwordRules(password);
      return isValid === rules.every(({ met }) => met) && !isTooLong && isValid === judgePassword(password).isValid;
    }),
  );
  assert.deepEqual(
    [passwordRules(`Aa1!${'x'.repeat(1021)}`)].map(({ isValid, isTooLong }) => [isValid, isTooLong]),
    [[false, true]],
  );
});
