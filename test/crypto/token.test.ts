// Tokens with a prefix: their form, and texts that are refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWellFormedToken, newToken, type TokenKind } from '../../src/crypto/secrets.ts';

const kinds: TokenKind[] = ['session', 'invite', 'reset'];

test('a token has its prefix and 43 base62 characters, whatever the bytes', () => {
  for (const fill of [0, 1, 127, 255]) {
    const token = newToken('session', (length) => new Uint8Array(length).fill(fill));
    assert.match(token, /^kmsat_[0-9A-Za-z]{43}$/);
    assert.equal(isWellFormedToken('session', token), true);
  }
});

test('a token of one kind is none of another', () => {
  for (const kind of kinds) {
    const token = newToken(kind, (length) => new Uint8Array(length).fill(7));
    assert.deepEqual(
      kinds.filter((other) => isWellFormedToken(other, token)),
      [kind],
    );
  }
});

test('texts of another form are refused', () => {
  const good = newToken('invite', (length) => new Uint8Array(length).fill(7));
  for (const text of ['', 'kmsin_', good.slice(0, -1), `${good}0`, `${good.slice(0, -1)}-`, ` ${good}`, `${good}\n`]) {
    assert.equal(isWellFormedToken('invite', text), false, JSON.stringify(text));
  }
});
