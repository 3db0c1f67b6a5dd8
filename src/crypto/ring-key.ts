// How a ring's key is wrapped to the ring's public key: HPKE with a fixed info per service and the key's id as
// associated data, so that a wrapped key opens only under its own id. The KEM is X25519 or X-Wing; the length of a
// public key or of a wrapped key tells which.
import { concatBytes, fromBase64, toBase64, utf8 } from './bytes.ts';
import { type HpkeKem, hpkeOpenSoon, hpkeSeal } from './hpke.ts';
import { xWingKem, xWingPublicKeyLength } from './x-wing.ts';

type RingService = 'ks' | 'asym';

/** KEM names, as in a ring's fields. */
type Kem = 'x25519' | 'mlkem768-x25519';

const infos = { ks: utf8('kms/ks/key/v1'), asym: utf8('kms/asym/key/v1') };

interface WrappedRingKey {
  /** Base64 of the encapsulated key (32 bytes, or 1120) and the ciphertext (key and 16-byte tag). */
  readonly wrapped: string;
  /** Base64 of the HPKE base nonce: for information only, nothing needs it. */
  readonly iv: string;
}

/** Wraps `keyBytes` to the ring's raw public key. Throws `invalid` for a key that is malformed or of low order. */
export function wrapRingKey(
  service: RingService,
  publicKey: Uint8Array,
  keyId: string,
  keyBytes: Uint8Array,
  random: (length: number) => Uint8Array,
): WrappedRingKey {
  const kem = publicKey.length === xWingPublicKeyLength ? xWingKem : undefined;
  const { enc, ciphertext, baseNonce } = hpkeSeal(publicKey, infos[service], utf8(keyId), keyBytes, random, kem);
  return { wrapped: toBase64(concatBytes(enc, ciphertext)), iv: toBase64(baseNonce) };
}

/**
 * The key bytes, opened with an X25519 private key or an X-Wing seed (32 bytes each); undefined if it was wrapped to
 * another ring, for another key or service, or altered. Throws `unavailable` if there is no Web Crypto.
 */
export async function unwrapRingKey(
  service: RingService,
  privateKey: Uint8Array,
  keyId: string,
  wrapped: string,
): Promise<Uint8Array | undefined> {
  const parts = partsOf(wrapped);
  return parts && hpkeOpenSoon(privateKey, parts.enc, infos[service], utf8(keyId), parts.ciphertext, parts.kem);
}

interface Parts {
  readonly enc: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly kem: HpkeKem | undefined;
}

function partsOf(wrapped: string): Parts | undefined {
  const bytes = fromBase64(wrapped) ?? new Uint8Array();
  const name = kemOfLength(bytes.length);
  if (name === undefined) return undefined;
  const kem = name === 'x25519' ? undefined : xWingKem;
  const encLength = kem?.encLength ?? 32;
  return { enc: bytes.subarray(0, encLength), ciphertext: bytes.subarray(encLength), kem };
}

/** The KEM of a wrapped key; undefined if the text is not a wrapped key of 32 bytes. */
export function kemOf(wrapped: string): Kem | undefined {
  return kemOfLength(fromBase64(wrapped)?.length ?? 0);
}

/** Whether the length fits a 32-byte key wrapped with that KEM. */
export function isWrapping(kem: Kem, wrapped: string): boolean {
  return fromBase64(wrapped)?.length === (kem === 'x25519' ? 32 : xWingKem.encLength) + 32 + 16;
}

/** The KEM for a length in bytes; at least an encapsulated key and a tag. */
function kemOfLength(length: number): Kem | undefined {
  if (length >= xWingKem.encLength + 16) return 'mlkem768-x25519';
  return length >= 48 ? 'x25519' : undefined;
}
