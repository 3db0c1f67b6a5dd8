// Ciphertexts as clients of AWS KMS keep them: a byte that names the format, the key's id, its version, and what the
// key made. With another key or version it does not open, since the message is bound to both.
import { concatBytes, fromBase64, toBase64 } from '../../crypto/bytes.ts';
import { failure } from './errors.ts';
import { idsOfBytes, keyIdBytes } from './names.ts';

const format = 0xa1;
const headerLength = 1 + 16 + 4;

/** @param ciphertext `vault:vN:` and base64. */
export function blobOf(keyId: string, ciphertext: unknown): string {
  const [, version = '', base64 = ''] = /^vault:v(\d+):(.+)$/.exec(String(ciphertext)) ?? [];
  const header = new Uint8Array(headerLength);
  header[0] = format;
  header.set(keyIdBytes(keyId) ?? new Uint8Array(16), 1);
  new DataView(header.buffer).setUint32(17, Number(version));
  return toBase64(concatBytes(header, fromBase64(base64) ?? new Uint8Array()));
}

interface ReadBlob {
  /** The ids that the key may have. */
  readonly ids: readonly string[];
  /** In the native form. */
  readonly ciphertext: string;
}

/** Throws `InvalidCiphertextException` for anything else. */
export function readBlob(base64: string): ReadBlob {
  const bytes = fromBase64(base64);
  if (!bytes || bytes[0] !== format || bytes.length <= headerLength) throw failure('InvalidCiphertextException');
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint32(17);
  return {
    ids: idsOfBytes(bytes.slice(1, 17)),
    ciphertext: `vault:v${version}:${toBase64(bytes.subarray(headerLength))}`,
  };
}
