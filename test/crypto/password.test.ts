// Argon2id hashes of passwords: reference vectors, own hashes, and malformed ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decoyPasswordHash, hashPassword, verifyPassword } from '../../src/crypto/argon2id.ts';
import { KmsError } from '../../src/errors.ts';

// From the argon2 reference implementation, src/test.c (CC0 / Apache-2.0).
const reference = [
  '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc',
];

test('verifies the hashes of the reference implementation', () => {
  for (const stored of reference) {
    assert.equal(verifyPassword(stored, 'password'), true, stored);
    assert.equal(verifyPassword(stored, 'Password'), false, stored);
  }
});

test('a hash names its parameters and verifies its own password alone', () => {
  const salt = Uint8Array.from({ length: 16 }, (_, index) => index);
  const stored = hashPassword('Grüße-4711 🗝', salt);
  assert.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$AAECAwQFBgcICQoLDA0ODw\$[A-Za-z0-9+/]{43}$/);
  assert.equal(verifyPassword(stored, 'Grüße-4711 🗝'), true);
  assert.equal(verifyPassword(stored, 'Grüße-4711'), false);
});

test('the decoy parses and matches nothing', () => {
  assert.equal(verifyPassword(decoyPasswordHash, ''), false);
});

test('a salt of another length is refused', () => {
  assert.throws(() => hashPassword('x', new Uint8Array(15)), KmsError);
});

test('what is no hash of ours is corrupt, whatever it would cost', () => {
  const [good = ''] = reference;
  const wrong = [
    '',
    'password',
    good.replace('argon2id', 'argon2i'),
    good.replace('v=19', 'v=16'),
    good.replace('m=256', 'm=9999999'),
    good.replace('t=2', 't=99'),
    good.replace('p=1', 'p=99'),
    good.replace('m=256', 'm=0'),
    good.replace('/4', '/5'),
    `${good}$`,
    good.slice(0, -24),
  ];
  for (const stored of wrong) {
    assert.throws(
      () => verifyPassword(stored, 'password'),
      (error) => error instanceof KmsError && error.code === 'corrupt' && !error.message.includes('$'),
      stored,
    );
  }
});
