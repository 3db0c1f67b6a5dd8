// Keys and signatures made by minisign 0.11 (`minisign -G -W`, `minisign -S`), malformed ones of every kind, and
// signatures made here, which equal minisign's own byte for byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toBase64, utf8 } from '../../src/crypto/bytes.ts';
import { formatKeyPair, minisign, parsePublicKey, parseSigningKey, verifyMinisign } from '../../src/crypto/minisign.ts';
import { KmsError } from '../../src/errors.ts';

const secret = `untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA2uSarSdfa+XYBGOCuAzMuA3JKoQZwRKUlxRDkF0XqNNGdfOm3kjNLmKUS1utY5AG0pjTaiclVzcsIrKPNWgqPC4wg9Qp7cwvAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
`;
const line = 'RWTa5JqtJ19r5WKUS1utY5AG0pjTaiclVzcsIrKPNWgqPC4wg9Qp7cwv';
const publicText = `untrusted comment: minisign public key E56B5F27AD9AE4DA\n${line}\n`;
const signed = utf8('a release\n');
const signature = `untrusted comment: signature from minisign secret key
RUTa5JqtJ19r5TOIs2ve5aNFK8X4ycxk+nqTPZzCi3dKmDGMxAkMNTEmpXMpIfphJ76u8YiRJxDhdN7v7SOY0f+CjPMRj53niwA=
trusted comment: kms 0.1.0
naWJFYNWAT2XayCGv0ob+aqXG5Yc5yEHMM60dNY/XaoflTiBVENlH8jNbxLH5cQ+N7Ct06syX9VTfJnZvvyHCw==
`;
/** Made by `minisign -S -l`. */
const legacy = `untrusted comment: signature from minisign secret key
RWTa5JqtJ19r5f0ZNJ2jmSs+BVdSu4au0q0zDObGObb0VP594OdCkHN2B1WUvsdVHPpRv3ndHQ2pTPZEEPuJKOcFDAM/IE88QQw=
trusted comment: kms 0.1.0
yp1IOvxVUYtE6x4AliIalxo/gv8nbxO2+2Ng6UhmTvPQOsb7N1LJ2ve+QWVlG/5J55Ta1psHKNpJ5rG2en9cDg==
`;

const says = (code: string, words: RegExp) => (error: unknown) =>
  error instanceof KmsError && error.code === code && words.test(error.message) && error.hint !== undefined;

test('a signature of minisign verifies, and its trusted comment is the answer', () => {
  assert.equal(verifyMinisign(parsePublicKey(publicText, 'key'), signed, signature, 'file'), 'kms 0.1.0');
});

test('the same key signs the same text as minisign does', () => {
  assert.equal(minisign(parseSigningKey(secret, 'key'), signed, 'kms 0.1.0'), signature);
});

test('keys are written as minisign writes them', () => {
  const pair = formatKeyPair(parseSigningKey(secret, 'key'));
  assert.equal(pair.public, publicText);
  assert.equal(pair.secret.split('\n')[1], secret.split('\n')[1]);
});

test('a public key is taken with its comment, without one, with other line ends and blank lines', () => {
  const { id, key } = parsePublicKey(publicText, 'key');
  for (const text of [line, `${line}\n`, publicText.replaceAll('\n', '\r\n'), `\n${publicText}\n  \n`]) {
    assert.deepEqual(parsePublicKey(text, 'key'), { id, key });
  }
});

for (const [what, text] of [
  ['nothing', ''],
  ['a comment alone', 'untrusted comment: minisign public key\n'],
  ['two keys', `${line}\n${line}\n`],
  ['one letter less', line.slice(0, -1)],
  ['another algorithm', toBase64(utf8('Xd'.padEnd(42, '.')))],
  ['a signature', signature],
  ['a secret key', secret],
] as const) {
  test(`no public key: ${what}`, () => {
    assert.throws(() => parsePublicKey(text, 'key'), says('invalid', /^key: expected a public key of minisign/));
  });
}

test('no secret key: nothing, a public one, one with a password, one whose halves do not fit', () => {
  for (const text of ['', publicText]) {
    assert.throws(() => parseSigningKey(text, 'key'), says('invalid', /expected a secret key/));
  }
  const bytes = Buffer.from(secret.split('\n')[1] ?? '', 'base64');
  const changed = (at: number, value: number): string => Buffer.from(bytes.with(at, value)).toString('base64');
  assert.throws(() => parseSigningKey(changed(2, 0x53), 'key'), says('invalid', /has a password/));
  assert.throws(
    () => parseSigningKey(changed(62, (bytes[62] ?? 0) ^ 1), 'key'),
    (error) => error instanceof KmsError && /damaged/.test(error.message),
  );
});

test('every change of what was signed, of either signature and of the trusted comment is found', () => {
  const key = parsePublicKey(line, 'key');
  const refused = (bytes: Uint8Array, text: string): void =>
    assert.throws(() => verifyMinisign(key, bytes, text, 'file'), says('refused', /file: /), text);
  refused(utf8('a release'), signature);
  refused(utf8('a releasf\n'), signature);
  refused(signed, signature.replace('kms 0.1.0', 'kms 0.1.1'));
  refused(signed, signature.replace('kms 0.1.0', 'kms 0.1.0 '));
  const lines = signature.split('\n');
  for (const at of [1, 3]) {
    for (let place = 0; place < 64; place++) {
      const bytes = Buffer.from(lines[at] ?? '', 'base64');
      const from = at === 1 ? 10 : 0;
      bytes.writeUInt8(bytes.readUInt8(from + place) ^ 0x10, from + place);
      refused(signed, lines.with(at, bytes.toString('base64')).join('\n'));
    }
  }
});

test('signatures of another kind, by another key, or cut off are refused', () => {
  const key = parsePublicKey(line, 'key');
  const refused = (text: string, words: RegExp): void =>
    assert.throws(() => verifyMinisign(key, signed, text, 'file'), says('refused', words), text);
  refused(legacy, /expected a prehashed signature/);
  refused('', /expected a signature of minisign/);
  for (let lines = 0; lines < 4; lines++) refused(signature.split('\n').slice(0, lines).join('\n'), /expected a sig/);
  const other = parseSigningKey(secret, 'key');
  const byOther = minisign({ ...other, id: Uint8Array.from(other.id).fill(7) }, signed, 'kms 0.1.0');
  refused(byOther, /signed by the key 0707070707070707, but E56B5F27AD9AE4DA is trusted/);
});
