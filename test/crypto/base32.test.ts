// Crockford's base32 as people copy it, and passphrases.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { passphraseSecret } from '../../src/crypto/argon2id.ts';
import { fromBase32, toBase32 } from '../../src/crypto/base32.ts';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';

test('the alphabet, in order', () => {
  const all = Uint8Array.from({ length: 20 }, (_, at) => {
    const bits = Array.from({ length: 32 }, (_, value) => value.toString(2).padStart(5, '0')).join('');
    return Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2);
  });
  assert.equal(toBase32(all).replaceAll('-', ''), '0123456789abcdefghjkmnpqrstvwxyz');
});

test('the examples of RFC 4648 §10, in the other alphabet', () => {
  for (const [text, expected] of [
    ['', ''],
    ['f', 'cr'],
    ['fo', 'csqg'],
    ['foo', 'csqp-y'],
    ['foob', 'csqp-yrg'],
    ['fooba', 'csqp-yrk1'],
    ['foobar', 'csqp-yrk1-e8'],
  ] as const) {
    assert.equal(toBase32(utf8(text)), expected);
    assert.deepEqual(fromBase32(expected, text.length), utf8(text));
  }
});

test('what is written is read, however it was copied', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const text = toBase32(bytes);
      const copies = [
        text,
        text.toUpperCase(),
        text.replaceAll('-', ' '),
        text.replaceAll('-', ''),
        text.replaceAll('0', 'O'),
        text.replaceAll('1', 'l'),
        text.replaceAll('1', 'I'),
        `${text}\n`,
      ];
      for (const copy of copies) assert.deepEqual(fromBase32(copy, bytes.length), bytes);
    }),
  );
});

test('other characters, lengths and spare bits are refused', () => {
  for (const text of ['cru', 'c', '', 'c*', 'cs', 'cü', 'cr=', 'cu', 'CU', '\u01310', '\u212a0'])
    assert.equal(fromBase32(text, 1), undefined, text);
});

test('argon2id of the reference implementation, and one text however it is composed', () => {
  const salt = utf8('somesalt');
  const cost = { m: 256, t: 2, p: 1 };
  // From test.c of the reference implementation: version 0x13, t = 2, m = 2^8, p = 1 and 2.
  assert.equal(
    toHex(passphraseSecret('password', salt, cost)),
    '9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe',
  );
  assert.equal(
    toHex(passphraseSecret('password', salt, { ...cost, p: 2 })),
    '6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037',
  );
  assert.deepEqual(passphraseSecret('caf\u00e9', salt, cost), passphraseSecret('cafe\u0301', salt, cost));
});

test('a cost that nobody chose is refused before it is paid', () => {
  const salt = new Uint8Array(16);
  for (const cost of [
    { m: 2_000_000, t: 3, p: 4 },
    { m: 65_536, t: 1000, p: 4 },
    { m: 65_536, t: 3, p: 1000 },
    { m: 0, t: 1, p: 1 },
    { m: 64.5, t: 1, p: 1 },
    { m: 16, t: 1, p: 4 },
  ]) {
    assert.throws(() => passphraseSecret('x', salt, cost), { code: 'corrupt' });
  }
  assert.throws(() => passphraseSecret('x', new Uint8Array(4), { m: 64, t: 1, p: 1 }), { code: 'corrupt' });
});
