// Messages of the Kubernetes KMS plugin interface, version 2 (k8s.io/kms/apis/v2/api.proto), as protobuf. A key of the
// API server is sealed as a kms file. See docs/kubernetes.md.
import { KmsError } from '../errors.ts';
import { fieldsOf, message } from './protobuf.ts';

/** Paths of its three calls. */
export const kmsCalls = {
  status: '/v2.KeyManagementService/Status',
  encrypt: '/v2.KeyManagementService/Encrypt',
  decrypt: '/v2.KeyManagementService/Decrypt',
} as const;

const what = 'a message of the KMS plugin interface, version 2';

/** Bytes that the API server accepts for a ciphertext and for a key's id. */
const longest = 1024;

/** `keyId` is the key for encrypting from now on. */
export function statusResponse(keyId: string): Uint8Array {
  return message({ 1: 'v2', 2: 'ok', 3: keyId });
}

/** The plaintext. Throws `invalid` for a malformed request. */
export function readEncryptRequest(bytes: Uint8Array): Uint8Array {
  return fieldsOf(bytes, what).bytes(1);
}

/** Throws `too-large` for a ciphertext longer than the API server accepts. */
export function encryptResponse(ciphertext: Uint8Array, keyId: string): Uint8Array {
  if (ciphertext.length >= longest) {
    throw new KmsError('too-large', `expected a plaintext whose ciphertext is shorter than ${longest} bytes`);
  }
  return message({ 1: ciphertext, 2: keyId });
}

interface DecryptRequest {
  readonly ciphertext: Uint8Array;
  readonly keyId: string;
}

/** Throws `invalid` for a malformed request. */
export function readDecryptRequest(bytes: Uint8Array): DecryptRequest {
  const fields = fieldsOf(bytes, what);
  return { ciphertext: fields.bytes(1), keyId: fields.text(3) };
}

export function decryptResponse(plaintext: Uint8Array): Uint8Array {
  return message({ 1: plaintext });
}
