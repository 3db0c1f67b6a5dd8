// The key file: one line of text with the secret of the custodian `keyfile`, and a checksum by which a damaged file is
// told from a wrong one. Format: docs/seal-format.md.
import { fromBase64Url, toBase64Url, toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';

const format = 'kms-master-key-1';
const shape = /^kms-master-key-1 ([A-Za-z0-9_-]{43})\.([0-9a-f]{8})(?:\r?\n)?$/;

/** Bytes in the secret of a custodian. */
export const secretLength = 32;

export function formatKeyFile(secret: Uint8Array): string {
  const line = `${format} ${toBase64Url(secret)}`;
  return `${line}.${checksum(line)}\n`;
}

/** The secret in the text of a key file. `name` is how errors call the file. */
export function parseKeyFile(text: string, name: string): Uint8Array {
  const [, encoded, sum] = shape.exec(text) ?? [];
  if (encoded === undefined || sum === undefined) {
    throw new KmsError('corrupt', `${name}: expected one line that starts with "${format}", found something else`, {
      hint: 'give the key file that `kms init` made, or a copy of it',
    });
  }
  const secret = fromBase64Url(encoded);
  if (secret?.length !== secretLength || sum !== checksum(`${format} ${encoded}`)) {
    throw new KmsError('corrupt', `${name}: the key file is damaged: its checksum does not fit`, {
      hint: 'take it from a copy of the key file',
    });
  }
  return secret;
}

function checksum(line: string): string {
  return toHex(sha256(utf8(line))).slice(0, 8);
}
