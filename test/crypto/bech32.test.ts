// Bech32 against the vectors of BIP 173 (Pieter Wuille, Greg Maxwell; BSD-2-Clause), and against recipients that age
// itself made.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fromBech32, toBech32 } from '../../src/crypto/bech32.ts';

const valid = [
  'A12UEL5L',
  'a12uel5l',
  'an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs',
  'abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw',
  `11${'q'.repeat(82)}c8247j`,
  'split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w',
  '?1ezyfcl',
];
const invalid = [
  ' 1nwldj5',
  '\x7f1axkwrx',
  '\x801eym55h',
  'pzry9x0s0muk',
  '1pzry9x0s0muk',
  'x1b4n0q5v',
  'li1dgmt3',
  'de1lg7wt\xff',
  'A1G7SGD8',
  '10a06t8',
  '1qzzfhee',
  'a12UEL5L',
  '',
  '1',
  // Padding of a whole group, and of bits that are set.
  'a1q3g6mn3',
  'a1ppjxu3w5',
  'a1qqqd87cpp',
  // A Kelvin sign, which is a K in lower case.
  'A1\u212aJQ',
];

test('the texts of BIP 173 are read, and made again from what they say', () => {
  for (const text of valid) {
    const read = fromBech32(text) ?? assert.fail(text);
    assert.equal(toBech32(read.prefix, read.bytes), text.toLowerCase());
  }
  for (const text of invalid) assert.equal(fromBech32(text), undefined, text);
});

test('a recipient of age has its 32 bytes', () => {
  const read = fromBech32('age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p');
  assert.deepEqual([read?.prefix, read?.bytes.length], ['age', 32]);
});

test('all bytes come back, in both cases, and one changed character is found', () => {
  const anything = fc.record({
    prefix: fc.stringMatching(/^[a-z0-9-]{1,20}$/),
    bytes: fc.uint8Array({ maxLength: 300 }),
    at: fc.nat(),
    by: fc.integer({ min: 1, max: 31 }),
  });
  fc.assert(
    fc.property(anything, ({ prefix, bytes, at, by }) => {
      const text = toBech32(prefix, bytes);
      for (const each of [text, text.toUpperCase()]) assert.deepEqual(fromBech32(each), { prefix, bytes });
      const characters = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
      const place = prefix.length + 1 + (at % (text.length - prefix.length - 1));
      const other = characters[(characters.indexOf(text[place] ?? '') + by) % 32];
      assert.equal(fromBech32(text.slice(0, place) + other + text.slice(place + 1)), undefined);
    }),
  );
});
