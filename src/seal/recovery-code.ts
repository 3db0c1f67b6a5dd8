// The code in a recovery kit: the secret of a custodian in characters that can be read from paper and typed. Format:
// docs/seal-format.md.
import { fromBase32, toBase32 } from '../crypto/base32.ts';
import { concatBytes, equalBytes, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { secretLength } from './key-file.ts';

const format = 'kms-recovery-1';
/** Anywhere in a text, so that the whole kit can be given as it is. */
const shape = /\bkms-recovery-1-([0-9a-z]{4}(?:[-\s]{1,8}[0-9a-z]{4}){13})(?![0-9a-z])/i;
const checksumLength = 3;

export function formatRecoveryCode(secret: Uint8Array): string {
  return `${format}-${toBase32(concatBytes(secret, checksum(secret)))}`;
}

/** Whether the text claims to hold a recovery code. */
export function mentionsRecoveryCode(text: string): boolean {
  return text.toLowerCase().includes(format);
}

/** The secret in a kit, or in its code alone. `name` is how errors call the text. */
export function parseRecoveryCode(text: string, name: string): Uint8Array {
  const [, code = ''] = shape.exec(text) ?? [];
  const bytes = fromBase32(code, secretLength + checksumLength);
  const secret = bytes?.slice(0, secretLength);
  if (!bytes || !secret || !equalBytes(bytes.subarray(secretLength), checksum(secret))) {
    throw new KmsError('corrupt', `${name}: the recovery code is mistyped: its checksum does not fit`, {
      hint: `compare it with the kit: ${format}- and 14 groups of four characters`,
    });
  }
  return secret;
}

function checksum(secret: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8(`${format}-`), secret)).subarray(0, checksumLength);
}
