// A custodian's secret as it comes from outside: out of a key file, an environment variable, a credential, a command or
// a recovery kit. Either in a format of ours, with a checksum, or 32 bytes in hex, base64 or as they are, as other
// tools give them.
import { fromBase64, fromBase64Url, fromHex, fromUtf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { parseKeyFile, secretLength } from './key-file.ts';
import { mentionsRecoveryCode, parseRecoveryCode } from './recovery-code.ts';

/** Throws `corrupt` for text of our formats that is damaged, and for anything else that is no secret. */
export function parseSecret(bytes: Uint8Array, name: string): Uint8Array {
  const text = fromUtf8(bytes);
  // Bytes of a generator; 32 characters of text are more likely a password.
  const isText = text !== undefined && /^[\x20-\x7e\r\n\t]*$/.test(text);
  if (bytes.length === secretLength && !isText) return bytes.slice();
  if (text === undefined) throw none(name);
  if (mentionsRecoveryCode(text)) return parseRecoveryCode(text, name);
  const line = text.trim();
  if (line.startsWith('kms-master-key-')) return parseKeyFile(line, name);
  const secret = fromHex(line.toLowerCase()) ?? fromBase64(line) ?? fromBase64Url(line);
  if (secret?.length === secretLength) return secret;
  throw none(name);
}

function none(name: string): KmsError {
  return new KmsError('corrupt', `${name}: expected a master key, found something else`, {
    hint: 'the line of a key file, a recovery code, or 32 random bytes in hex or base64',
  });
}
