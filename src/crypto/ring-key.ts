// How a ring's key is wrapped to the ring's public key: HPKE with a fixed info for each service and the key's id as
// associated data, so that a wrapped key opens only as the key that it is.
import { concatBytes, fromBase64, toBase64, utf8 } from './bytes.ts';
import { hpkeOpen, hpkeSeal } from './hpke.ts';

type RingService = 'ks' | 'asym';

const infos = { ks: utf8('kms/ks/key/v1'), asym: utf8('kms/asym/key/v1') };

interface WrappedRingKey {
  /** Base64 of the encapsulated key (32 bytes) and the ciphertext (key and 16-byte tag). */
  readonly wrapped: string;
  /** Base64 of the HPKE base nonce: it tells, nothing needs it. */
  readonly iv: string;
}

/** Wraps `keyBytes` to the ring's raw public key. Throws `invalid` for a low-order public key. */
export function wrapRingKey(
  service: RingService,
  publicKey: Uint8Array,
  keyId: string,
  keyBytes: Uint8Array,
  random: (length: number) => Uint8Array,
): WrappedRingKey {
  const { enc, ciphertext, baseNonce } = hpkeSeal(publicKey, infos[service], utf8(keyId), keyBytes, random);
  return { wrapped: toBase64(concatBytes(enc, ciphertext)), iv: toBase64(baseNonce) };
}

/** The key bytes; undefined when it was wrapped to another ring, for another key or service, or altered. */
export function unwrapRingKey(
  service: RingService,
  privateKey: Uint8Array,
  keyId: string,
  wrapped: string,
): Uint8Array | undefined {
  const bytes = fromBase64(wrapped);
  if (!bytes || bytes.length < 48) return undefined;
  return hpkeOpen(privateKey, bytes.subarray(0, 32), infos[service], utf8(keyId), bytes.subarray(32));
}
