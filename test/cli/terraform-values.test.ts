// Values of OpenTofu: bytes that its own library writes, every type there and back, and what is malformed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  fromPlain,
  hasUnknown,
  jsonOf,
  readJsonValue,
  readValue,
  type Type,
  Typed,
  unknown,
  writeValue,
} from '../../src/cli/provider/values.ts';
import { KmsError } from '../../src/errors.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));

/** Written by cty/msgpack of github.com/zclconf/go-cty, v1.16.3. */
const known: readonly (readonly [value: Parameters<typeof writeValue>[0], type: Type, written: string])[] = [
  ['hello', 'string', 'a568656c6c6f'],
  ['', 'string', 'a0'],
  [null, 'string', 'c0'],
  [unknown, 'string', 'd40000'],
  [true, 'bool', 'c3'],
  [false, 'bool', 'c2'],
  [5, 'number', '05'],
  [1.5, 'number', 'cb3ff8000000000000'],
  [['hello'], ['list', 'string'], '91a568656c6c6f'],
  [[unknown], ['list', 'string'], '91d40000'],
  [['hello'], ['set', 'string'], '91a568656c6c6f'],
  [{ greeting: 'hello' }, ['map', 'string'], '81a86772656574696e67a568656c6c6f'],
  [['hello', 5], ['tuple', ['string', 'number']], '92a568656c6c6f05'],
  [{ greeting: 'hello' }, ['object', { greeting: 'string' }], '81a86772656574696e67a568656c6c6f'],
  [new Typed('string', 'hello'), 'dynamic', '92c40822737472696e6722a568656c6c6f'],
];

test('each type, as OpenTofu writes it', () => {
  for (const [value, type, written] of known) {
    assert.equal(hex(writeValue(value, type)), written, JSON.stringify(type));
    assert.deepEqual(readValue(bytes(written), type), value);
  }
});

test('refined unknown values are unknown; large and exact numbers are numbers', () => {
  assert.equal(readValue(bytes('c7030c8101c2'), 'string'), unknown);
  assert.equal(readValue(writeValue('12.5', 'string'), 'number'), 12.5);
  assert.equal(readValue(bytes('cf0000000100000000'), 'number'), 2 ** 32);
  assert.ok(hasUnknown({ a: [new Typed(['list', 'string'], [unknown])] }));
  assert.ok(!hasUnknown({ a: [new Typed(['list', 'string'], ['x'])], b: null }));
  assert.throws(() => jsonOf([unknown]), KmsError);
});

test('missing attributes are null, and more of them are left out', () => {
  const type: Type = ['object', { a: 'string', b: ['list', 'string'] }];
  assert.deepEqual(readValue(writeValue({ a: 'x' }, type), type), { a: 'x', b: null });
  assert.deepEqual(readJsonValue('{"b": ["y"], "c": 1}', type), { a: null, b: ['y'] });
});

test('any JSON comes back from a value of any type', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), (json) => {
      // -0 is 0 in JSON.
      const plain = JSON.parse(JSON.stringify(json));
      const back = readValue(writeValue(fromPlain(plain, 'dynamic'), 'dynamic'), 'dynamic');
      assert.deepEqual(JSON.parse(JSON.stringify(jsonOf(back))), plain);
    }),
  );
});

test('what does not fit is refused', () => {
  const wrong: readonly (readonly [string, Type])[] = [
    ['c1', 'string'],
    ['', 'string'],
    ['05', 'string'],
    ['a161', 'bool'],
    ['a161', 'number'],
    ['a161', ['list', 'string']],
    ['90', ['map', 'string']],
    ['90', ['object', {}]],
    ['91a161', ['tuple', []]],
    ['05', 'dynamic'],
    ['92c40578797a2278a161', 'dynamic'],
    ['92c4025b5da161', 'dynamic'],
  ];
  for (const [written, type] of wrong) assert.throws(() => readValue(bytes(written), type), KmsError, written);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (random) => {
      try {
        readValue(random, ['object', { a: 'dynamic', b: ['map', 'number'] }]);
      } catch (error) {
        assert.ok(error instanceof KmsError, String(error));
      }
    }),
  );
});
