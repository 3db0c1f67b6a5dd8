// The key file: it is read as written, and nothing else is accepted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KmsError } from '../../src/errors.ts';
import { formatKeyFile, parseKeyFile } from '../../src/seal/custodian-secret.ts';

const secret = Uint8Array.from({ length: 32 }, (_, i) => i);
const text = 'kms-master-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8.';

function refusal(input: string): KmsError {
  try {
    parseKeyFile(input, 'my.key');
  } catch (error) {
    assert.ok(error instanceof KmsError);
    return error;
  }
  assert.fail(`was taken: ${JSON.stringify(input)}`);
}

test('the format is frozen', () => {
  const file = formatKeyFile(secret);
  assert.match(file, /^kms-master-key-1 [A-Za-z0-9_-]{43}\.[0-9a-f]{8}\n$/);
  assert.ok(file.startsWith(text));
  assert.deepEqual(parseKeyFile(`${text}${file.slice(-9)}`, 'my.key'), secret);
});

test('every secret comes back, with or without the line end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const file = formatKeyFile(bytes);
      assert.deepEqual(parseKeyFile(file, 'my.key'), bytes);
      assert.deepEqual(parseKeyFile(file.trimEnd(), 'my.key'), bytes);
      assert.deepEqual(parseKeyFile(file.replace('\n', '\r\n'), 'my.key'), bytes);
    }),
  );
});

test('every changed bit is found, and no error shows a piece of the secret', () => {
  const file = Buffer.from(formatKeyFile(secret));
  for (let at = 0; at < file.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(file);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
      const error = refusal(changed.toString('latin1'));
      assert.equal(error.code, 'corrupt');
      assert.ok(error.message.startsWith('my.key: '));
      assert.ok(!error.message.includes('AAECAwQ'));
    }
  }
});

test('a cut or lengthened file is refused', () => {
  const file = formatKeyFile(secret).trimEnd();
  for (let length = 0; length < file.length; length++) refusal(file.slice(0, length));
  for (const more of [' ', 'x', '\n\n', '\nmore', '\0']) refusal(file + more);
  refusal(`\ufeff${file}`);
});
