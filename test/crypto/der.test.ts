// DER: one form for each value, and nothing read beyond what is there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toHex } from '../../src/crypto/bytes.ts';
import { DerReader, der, derBits, derUnsigned, onlySequence, tags, wholeBytes } from '../../src/crypto/der.ts';
import { hex } from '../support/vectors.ts';

const refuses = (run: () => unknown, words: RegExp): void =>
  assert.throws(run, { name: 'KmsError', code: 'invalid', message: words });

test('what is written is read again, at every length of a length', () => {
  for (const length of [0, 1, 127, 128, 255, 256, 65535, 65536]) {
    const contents = new Uint8Array(length).fill(7);
    const reader = onlySequence(der(tags.sequence, der(tags.octetString, contents), derBits(contents)));
    assert.ok(reader.isNext(tags.octetString));
    assert.equal(reader.readIf(tags.integer), undefined);
    assert.deepEqual(reader.readIf(tags.octetString), contents);
    assert.deepEqual(reader.bits(), contents);
    reader.end();
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (number) => {
      const written = derUnsigned(number);
      const reader = new DerReader(written);
      assert.equal(toHex(reader.unsigned()), toHex(number).replace(/^(?:00)+/, ''));
      reader.end();
    }),
  );
  assert.deepEqual(
    ['', '00', '0000', '7f', '80', '0080'].map((each) => toHex(derUnsigned(hex(each)))),
    [...['020100', '020100', '020100', '02017f', '02020080', '02020080']],
  );
});

test('other encodings than the one are refused', () => {
  const table: readonly (readonly [string, RegExp])[] = [
    ['', /a value is missing/],
    ['04', /another type/],
    ['30', /cut off/],
    ['3001', /cut off/],
    ['308100', /not the shortest/],
    ['30817f', /not the shortest/],
    ['30820080', /not the shortest/],
    ['3082', /cut off/],
    ['3080', /unsupported length/],
    ['308500000000010000', /unsupported length/],
    ['3084ffffffff', /cut off/],
    ['300000', /unexpected bytes/],
  ];
  for (const [given, words] of table) refuses(() => onlySequence(hex(given)), words);
  const numbers: readonly (readonly [string, RegExp])[] = [
    ['0200', /padded number/],
    ['02020001', /padded number/],
    ['020180', /negative number/],
  ];
  for (const [given, words] of numbers) refuses(() => new DerReader(hex(given)).unsigned(), words);
  assert.deepEqual(new DerReader(hex('020100')).unsigned(), new Uint8Array());
  for (const given of ['', '01ff']) refuses(() => wholeBytes(hex(given)), /no whole number of bytes/);
});
