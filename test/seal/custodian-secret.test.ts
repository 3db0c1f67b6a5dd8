// Shares, recovery codes and external secrets: they parse as written, a slip of the pen is named, and no secret is
// repeated.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toBase64, toBase64Url, toHex, utf8 } from '../../src/crypto/bytes.ts';
import { KmsError } from '../../src/errors.ts';
import {
  formatKeyFile,
  formatRecoveryCode,
  formatShare,
  parseRecoveryCode,
  parseSecret,
  parseShare,
} from '../../src/seal/custodian-secret.ts';

const secret = Uint8Array.from({ length: 32 }, (_, i) => i * 7);
const share = { set: '9f3a1c20', threshold: 3, index: 2, bytes: secret };

function refusal(run: () => unknown): KmsError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof KmsError, `${error}`);
    return error;
  }
  assert.fail('was taken');
}

/** Every text with one character of the code replaced by another of the alphabet. */
function* slips(text: string, from: number): Generator<string> {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '-') continue;
    for (const other of '0123456789abcdefghjkmnpqrstvwxyz') {
      if (other !== text[at]) yield text.slice(0, at) + other + text.slice(at + 1);
    }
  }
}

test('a share: frozen, and read however it was copied', () => {
  const text = formatShare(share);
  assert.equal(text, 'kms-share-1-9f3a1c20-3-2-003g-w58w-4cn3-2e1z-8s6n-8pv2-d5r7-ezm5-hj9s-n8d8-nyvb-vh6b-tbcw-89wj');
  for (const copy of [
    text,
    text.toUpperCase(),
    ` ${text}\r\n`,
    text.replaceAll('-', ' - '),
    text.replace('h', '\nh'),
  ]) {
    assert.deepEqual(parseShare(copy), share);
  }
});

test('a mistyped share is named, and never taken for another', () => {
  const text = formatShare(share);
  for (const slip of slips(text, text.indexOf('3-2-') + 4)) {
    const error = refusal(() => parseShare(slip));
    assert.match(error.message, /^share 2 of the set 9f3a1c20 is mistyped/);
    assert.ok(!error.message.includes('w58w'));
  }
  for (const [wrong, message] of [
    [text.replace('-3-2-', '-3-4-'), /^share 4 of/],
    [text.replace('-3-2-', '-2-2-'), /^share 2 of/],
    [text.replace('9f3a1c20', '9f3a1c21'), /set 9f3a1c21 is mistyped/],
    [text.slice(0, -1), /is mistyped/],
    [`${text}0`, /is mistyped/],
    [text.replace('-3-2-', '-3-0-'), /share 0 .* mistyped/],
    [text.slice(12), /^expected a share/],
    ['', /^expected a share/],
    [formatKeyFile(secret), /^expected a share/],
  ] as const) {
    assert.match(refusal(() => parseShare(wrong)).message, message);
  }
});

test('a recovery code is found in its kit, and a slip is found in the code', () => {
  const code = formatRecoveryCode(secret);
  for (const text of [
    code,
    code.toUpperCase(),
    `Recovery kit\n\n    ${code}\n\nKeep it safe.\n`,
    code.replaceAll('-', ' ').replace('kms recovery 1 ', 'kms-recovery-1-'),
    code.replace(/(.{40})-/, '$1-\n  '),
  ]) {
    assert.deepEqual(parseRecoveryCode(text, 'kit'), secret, text);
  }
  for (const slip of slips(code, 'kms-recovery-1-'.length)) {
    assert.equal(refusal(() => parseRecoveryCode(slip, 'kit')).code, 'corrupt');
  }
  for (const text of ['', 'kms-recovery-1', `${code}abc`, code.slice(0, -5)]) {
    const error = refusal(() => parseRecoveryCode(text, 'kit'));
    assert.match(error.message, /^kit: the recovery code is mistyped/);
  }
});

test('a secret from outside: every form that is one, and none that only looks like it', () => {
  const forms: readonly Uint8Array[] = [
    secret,
    utf8(formatKeyFile(secret)),
    utf8(formatKeyFile(secret).trim()),
    utf8(formatRecoveryCode(secret)),
    utf8(toHex(secret)),
    utf8(`${toHex(secret).toUpperCase()}\n`),
    utf8(toBase64(secret)),
    utf8(`  ${toBase64Url(secret)}\r\n`),
  ];
  for (const form of forms) assert.deepEqual(parseSecret(form, 'here'), secret);
  for (const text of [
    '',
    'correct horse battery staple',
    '0123456789abcdef0123456789abcdef',
    toHex(secret.subarray(1)),
    toBase64(new Uint8Array(33)),
    formatKeyFile(secret).replace('A', 'B'),
    formatRecoveryCode(secret).replace('w', 'x'),
  ]) {
    const error = refusal(() => parseSecret(utf8(text), 'here'));
    assert.equal(error.code, 'corrupt', text);
    assert.ok(error.message.startsWith('here: '));
    assert.ok(text === '' || !error.message.includes(text));
  }
  assert.equal(refusal(() => parseSecret(Uint8Array.of(0xff, 0xfe), 'here')).code, 'corrupt');
});
