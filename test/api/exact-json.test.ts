// Numbers in JSON: those that a double can't hold are reported, and everything else is parsed as JSON.parse does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Kept, numberProblemIn, parseExactly } from '../../src/api/exact-json.ts';

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
  '1e23',
  '123456789012345680000.0e0',
  '9007199254740994.0',
  '9007199254740994.5',
  '900719925474099.4e1',
  '0.9007199254740994e16',
  `1${'0'.repeat(500_000)}1e-499980`,
];
for (const text of kept) {
  test(`${text.slice(0, 40)} is kept`, () =>
    assert.deepEqual(parseExactly(` [${text}] `), { value: JSON.parse(`[${text}]`), inexact: [] }));
}

const changed = [
  '9007199254740993',
  '-9007199254740993',
  '12345678901234567890',
  '100000000000000000000001',
  '18446744073709551615',
  '9007199254740993.0',
  '9.007199254740993e15',
  '-900719925474099.3e1',
  '0.9007199254740993E+16',
  '90071992547409930000e-4',
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
  const { value } = parseExactly(text);
  assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
  assert.deepEqual(Object.keys(Object(value)), ['12345678901234567890', '__proto__']);
});

test('any JSON comes out as JSON.parse has it', () => {
  fc.assert(
    fc.property(fc.json(), fc.bigInt({ min: -(2n ** 53n) + 1n, max: 2n ** 53n - 1n }), (json, number) => {
      const text = `[${json}, ${number}, "1234567890123456"]`;
      assert.deepEqual(parseExactly(text).value, JSON.parse(text));
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

test('an integer is told alike however it is written', () => {
  const anywhere = fc.tuple(fc.bigInt({ min: -(2n ** 69n), max: 2n ** 69n }), fc.nat({ max: 25 }));
  fc.assert(
    fc.property(anywhere, ([number, places]) => {
      const digits = String(number < 0n ? -number : number).padStart(places + 1, '0');
      const at = digits.length - places;
      const moved = places === 0 ? digits : `${digits.slice(0, at)}.${digits.slice(at)}`;
      // JSON allows no leading zeros.
      const text = `${number < 0n ? '-' : ''}${moved.replace(/^0+(?=[0-9])/, '')}e${places}`;
      const [written, plain] = [parseExactly(text), parseExactly(String(number))];
      assert.deepEqual(written.inexact, plain.inexact, text);
    }),
  );
});

test('what is no JSON throws, and nesting without end does not', () => {
  for (const text of ['', '1234567890123456789x', '{"a": 01234567890123456}', '-'])
    assert.throws(() => parseExactly(text));
});

test('no nesting hides a number', () => {
  const deep = (inner: string) => `${'['.repeat(400_000)}${inner}${']'.repeat(400_000)}`;
  const kept = new Map([['amount', 'all']] as const);
  const hidden = `{"ignored": ${deep('')}, "amount": 9007199254740993}`;
  assert.deepEqual(parseExactly(hidden, kept).inexact, ['amount']);
  assert.deepEqual(parseExactly(`{"amount": ${deep('9007199254740993')}}`, kept).inexact, ['amount']);
  assert.deepEqual(parseExactly(deep('9007199254740993')).inexact, ['']);
});

test('only numbers that are kept count, each field once', () => {
  const kept: Kept = new Map<string, Kept>([
    ['props', 'all'],
    ['config', new Map<string, Kept>([['max', 'all']])],
  ]);
  const inexact = (text: string) => parseExactly(text, kept).inexact;
  const bad = '12345678901234567890';
  assert.deepEqual(inexact(`{"other": ${bad}, "x": [{"props": ${bad}, "}": "]\\\\"}], "config": ${bad}}`), []);
  assert.deepEqual(inexact(`{"config": {"other": ${bad}, "props": ${bad}, "max" :\n${bad} }}`), ['config.max']);
  assert.deepEqual(inexact(`{"pr\\u006fps": {"a": [${bad}, ${bad}]}, "props": [${bad}]}`), ['props']);
  assert.deepEqual(inexact(`[${bad}]`), []);
  assert.deepEqual(inexact(`{ "config" : { } , "x" : {"\\"": ${bad}} , "props" : {"a" : "${bad}"} }`), []);
  const odd = fc.record({ before: fc.json(), name: fc.string(), after: fc.json() });
  fc.assert(
    fc.property(odd, ({ before, name, after }) => {
      const key = JSON.stringify(`-${name}`);
      const text = `{${key}: ${before}, "props": {${key}: [${before}, ${bad}]}, ${key}: ${after}}`;
      assert.deepEqual(inexact(text), ['props']);
      assert.deepEqual(inexact(text.replace('"props"', '"p"')), []);
    }),
  );
});
