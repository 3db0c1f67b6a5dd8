// Messages of the Kubernetes KMS plugin interface, version 2 (k8s.io/kms/apis/v2/api.proto), as protobuf. A key of the
// API server is sealed as a kms file. See docs/kubernetes.md.
import { concatBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';

/** Paths of its three calls. */
export const kmsCalls = {
  status: '/v2.KeyManagementService/Status',
  encrypt: '/v2.KeyManagementService/Encrypt',
  decrypt: '/v2.KeyManagementService/Decrypt',
} as const;

/** Bytes that the API server accepts for a ciphertext and for a key's id. */
const longest = 1024;

/** `keyId` is the key for encrypting from now on. */
export function statusResponse(keyId: string): Uint8Array {
  return message([
    [1, utf8('v2')],
    [2, utf8('ok')],
    [3, utf8(keyId)],
  ]);
}

/** The plaintext. Throws `invalid` for a malformed request. */
export function readEncryptRequest(bytes: Uint8Array): Uint8Array {
  return fieldsOf(bytes).get(1) ?? new Uint8Array();
}

/** Throws `too-large` for a ciphertext longer than the API server accepts. */
export function encryptResponse(ciphertext: Uint8Array, keyId: string): Uint8Array {
  if (ciphertext.length >= longest) {
    throw new KmsError('too-large', `expected a plaintext whose ciphertext is shorter than ${longest} bytes`);
  }
  return message([
    [1, ciphertext],
    [2, utf8(keyId)],
  ]);
}

interface DecryptRequest {
  readonly ciphertext: Uint8Array;
  readonly keyId: string;
}

/** Throws `invalid` for a malformed request. */
export function readDecryptRequest(bytes: Uint8Array): DecryptRequest {
  const fields = fieldsOf(bytes);
  const keyId = fromUtf8(fields.get(3) ?? new Uint8Array());
  if (keyId === undefined) throw malformed();
  return { ciphertext: fields.get(1) ?? new Uint8Array(), keyId };
}

export function decryptResponse(plaintext: Uint8Array): Uint8Array {
  return message([[1, plaintext]]);
}

/** Fields of bytes and text, by field numbers below 16; empty ones are left out, as in protobuf. */
function message(fields: readonly (readonly [number: number, value: Uint8Array])[]): Uint8Array {
  const written = fields.filter(([, { length }]) => length > 0);
  return concatBytes(
    ...written.flatMap(([number, value]) => [Uint8Array.of((number << 3) | 2, ...varint(value.length)), value]),
  );
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Fields of bytes and text; if one occurs twice, the last counts. Others are skipped. */
function fieldsOf(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  let at = 0;
  const number = (): number => {
    // No length or field number exceeds 32 bits; other numbers are only skipped.
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) throw malformed();
      if (shift < 32) value = (value | ((byte & 0x7f) << shift)) >>> 0;
      if (byte < 0x80) return value;
    }
    throw malformed();
  };
  const take = (length: number): Uint8Array => {
    at += length;
    if (at > bytes.length) throw malformed();
    return bytes.slice(at - length, at);
  };
  while (at < bytes.length) {
    const key = number();
    const kind = key & 7;
    if (kind === 0) number();
    else if (kind === 1) take(8);
    else if (kind === 5) take(4);
    else if (kind === 2) fields.set(key >>> 3, take(number()));
    else throw malformed();
  }
  return fields;
}

function malformed(): KmsError {
  return new KmsError('invalid', 'expected a message of the KMS plugin interface, version 2');
}
