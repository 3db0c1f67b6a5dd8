// TOTP and HOTP against the SHA-1 vectors of RFC 6238 Appendix B and RFC 4226 Appendix D.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { utf8 } from '../../src/crypto/bytes.ts';
import { isTotpCode, matchTotp, totpCode, totpSecretText, totpStep, totpUri } from '../../src/crypto/totp.ts';

const secret = utf8('12345678901234567890');

for (const [seconds, code] of [
  [59, '94287082'],
  [1111111109, '07081804'],
  [1111111111, '14050471'],
  [1234567890, '89005924'],
  [2000000000, '69279037'],
  [20000000000, '65353130'],
] as const) {
  test(`RFC 6238: ${code} at ${seconds} s`, () => {
    const now = seconds * 1000;
    assert.equal(totpCode(secret, totpStep(now), 8), code);
    assert.equal(totpCode(secret, totpStep(now)), code.slice(2));
    assert.equal(matchTotp(secret, code.slice(2), now, -1), totpStep(now));
  });
}

test('RFC 4226: the first ten values', () => {
  const codes = Array.from({ length: 10 }, (_, counter) => totpCode(secret, counter));
  assert.deepEqual(codes, [
    '755224',
    '287082',
    '359152',
    '969429',
    '338314',
    '254676',
    '287922',
    '162583',
    '399871',
    '520489',
  ]);
});

test('a code is good for its step, the one before and the one after, and once', () => {
  const step = 41152263;
  const code = totpCode(secret, step);
  const at = (steps: number, milliseconds = 0): number => (step + steps) * 30_000 + milliseconds;
  for (const now of [at(-1), at(0), at(0, 29_999), at(1), at(1, 29_999)]) {
    assert.equal(matchTotp(secret, code, now, -1), step);
    assert.equal(matchTotp(secret, code, now, step - 1), step);
    assert.equal(matchTotp(secret, code, now, step), undefined, 'it was used');
    assert.equal(matchTotp(secret, code, now, step + 1), undefined, 'a later one was used');
  }
  for (const now of [at(-1, -1), at(2), at(100)]) assert.equal(matchTotp(secret, code, now, -1), undefined);
});

test('what is no code matches nothing, and has not its form', () => {
  const now = 59_000;
  for (const text of ['', '28708', '2870820', '94287082', ' 287082', '287082\n', '28708a', '٢٨٧٠٨٢', '-87082']) {
    assert.equal(isTotpCode(text), false, text);
    assert.equal(matchTotp(secret, text, now, -1), undefined, text);
  }
  assert.equal(isTotpCode('287082'), true);
  assert.equal(matchTotp(secret, totpCode(secret, 0), 0, -1), 0, 'the first step of all');
});

test('no two of three steps in a row have one code, or the later counts', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.nat(2 ** 31), (key, step) => {
      const found = matchTotp(key, totpCode(key, step), step * 30_000, -1);
      assert.ok(found !== undefined && Math.abs(found - step) <= 1);
      assert.equal(totpCode(key, found), totpCode(key, step));
    }),
    { numRuns: 50 },
  );
});

test('an app is told the secret in base32, and whose it is', () => {
  assert.equal(totpSecretText(secret), 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  assert.equal(
    totpUri(secret, { issuer: 'kms.example.org', account: 'ada l:x&y' }),
    'otpauth://totp/kms.example.org:ada%20l%3Ax%26y?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=kms.example.org',
  );
});
