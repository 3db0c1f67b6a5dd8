// Messages of protocol buffers: bytes that other implementations write, and what is malformed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fieldsOf, mapEntries, message } from '../../src/client/protobuf.ts';
import { KmsError } from '../../src/errors.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

test('the examples of the encoding guide of protocol buffers', () => {
  assert.equal(hex(message({ 1: 150 })), '089601');
  assert.equal(hex(message({ 2: 'testing' })), '120774657374696e67');
  assert.equal(hex(message({ 3: message({ 1: 150 }) })), '1a03089601');
  assert.equal(hex(message({ 4: 'hello', 5: ['1', '2', '3'] })), '220568656c6c6f2a01312a01322a0133');
});

test('empty values are left out, but not from lists; numbers of fields may be large', () => {
  assert.equal(hex(message({ 1: 0, 2: '', 3: false, 4: new Uint8Array(), 5: undefined, 6: [] })), '');
  assert.equal(hex(message({ 1: [0], 2: [''], 3: true })), '080012001801');
  assert.equal(hex(message({ 100: 1 })), 'a00601');
  assert.equal(fieldsOf(message({ 100: 2 ** 40 }), 'x').number(100), 2 ** 40);
  assert.deepEqual(mapEntries({ a: Uint8Array.of(1) }).map(hex), ['0a0161120101']);
});

test('fields come back; the last one of a number counts, and others are skipped', () => {
  const read = fieldsOf(Buffer.from('0a01610a01620900000000000000000d0000000010ffffffffffffffffff01', 'hex'), 'x');
  assert.equal(read.text(1), 'b');
  assert.deepEqual(read.all(1).map(hex), ['61', '62']);
  assert.deepEqual([read.has(1), read.has(2), read.has(3)], [true, true, false]);
  assert.deepEqual([read.number(9), read.text(9), hex(read.bytes(9))], [0, '', '']);
});

test('what is malformed is refused, whatever it is', () => {
  for (const bytes of ['0a', '0a05', '08', 'ffffffffffffffffffffff01', '0b', '0c', '0901']) {
    assert.throws(() => fieldsOf(Buffer.from(bytes, 'hex'), 'a message of mine'), /expected a message of mine/, bytes);
  }
  assert.throws(() => fieldsOf(message({ 1: Uint8Array.of(0xff) }), 'x').text(1), KmsError);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        fieldsOf(bytes, 'x');
      } catch (error) {
        assert.ok(error instanceof KmsError);
      }
    }),
  );
});
