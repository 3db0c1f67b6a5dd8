// Numbers in JSON: which a double keeps, and that the others are told and everything else is as JSON.parse has it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { numberProblemIn, parseExactly } from '../../src/api/exact-json.ts';

const kept = [
  '0',
  '-0',
  '9007199254740991',
  '-9007199254740991',
  '9007199254740992',
  '9007199254740994',
  '1000000000000000000000000',
  '1e22',
  '1e-300',
  '5e-324',
  '0.1234567890123456789',
  '3.14159265358979323846',
  '1.7976931348623157e308',
  '0e-999',
  '-0.0e-400',
  '1.00000000000000000000',
  '100000000000000000000000',
];
for (const text of kept) {
  test(`${text} is kept`, () =>
    assert.equal(parseExactly(` [${text}] `)?.toString(), JSON.parse(`[${text}]`).toString()));
}

const changed = [
  '9007199254740993',
  '-9007199254740993',
  '12345678901234567890',
  '100000000000000000000001',
  '18446744073709551615',
  '1e-400',
  '-12.5e-4000',
];
for (const text of changed) {
  test(`${text} would be another number`, () => {
    for (const json of [text, `[${text}]`, `{"a": {"b": [1, ${text}]}}`, `{"a":${text},"b":"x"}`]) {
      assert.equal(
        numberProblemIn(parseExactly(json)),
        'holds a number that cannot be kept exactly: send it as a string',
      );
    }
  });
}

test('what is too large for a double is out of range', () => {
  for (const text of ['1e400', `1${'0'.repeat(400)}`]) {
    assert.equal(numberProblemIn(parseExactly(`{"a": ${text}}`)), 'holds a number out of range');
  }
});

test('digits in strings and keys are text', () => {
  const text = '{"12345678901234567890": "12345678901234567890 9e-999", "__proto__": {"x": 1}}';
  const value = parseExactly(text);
  assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
  assert.deepEqual(Object.keys(Object(value)), ['12345678901234567890', '__proto__']);
});

test('any JSON comes out as JSON.parse has it', () => {
  fc.assert(
    fc.property(fc.json(), fc.bigInt({ min: -(2n ** 53n) + 1n, max: 2n ** 53n - 1n }), (json, number) => {
      const text = `[${json}, ${number}, "1234567890123456"]`;
      assert.deepEqual(parseExactly(text), JSON.parse(text));
    }),
  );
  fc.assert(
    // Below 10^21 a double is written in full.
    fc.property(fc.bigInt({ min: -(2n ** 69n), max: 2n ** 69n }), (number) => {
      const same = String(Number(number)) === String(number);
      assert.equal(numberProblemIn(parseExactly(`{"n": ${number}}`)) === undefined, same);
    }),
  );
});

test('what is no JSON throws, and nesting without end does not', () => {
  for (const text of ['', '1234567890123456789x', '{"a": 01234567890123456}', '-'])
    assert.throws(() => parseExactly(text));
  const deep = `${'['.repeat(200_000)}12345678901234567890${']'.repeat(200_000)}`;
  assert.doesNotThrow(() => numberProblemIn(parseExactly(deep)));
});
