// How a ring's key is wrapped to the ring's public key: HPKE with a fixed info for each service and the key's id as
// associated data, so that a wrapped key opens only as the key that it is. The KEM is X25519's or X-Wing's: the length
// of a public key tells which, and so does the length of what is wrapped.
import { concatBytes, fromBase64, toBase64, utf8 } from './bytes.ts';
import { type HpkeKem, hpkeOpenSoon, hpkeSeal } from './hpke.ts';
import { xWingKem, xWingPublicKeyLength } from './x-wing.ts';

type RingService = 'ks' | 'asym';

/** As rings have it. */
type Kem = 'x25519' | 'mlkem768-x25519';

const infos = { ks: utf8('kms/ks/key/v1'), asym: utf8('kms/asym/key/v1') };

interface WrappedRingKey {
  /** Base64 of the encapsulated key (32 bytes, or 1120) and the ciphertext (key and 16-byte tag). */
  readonly wrapped: string;
  /** Base64 of the HPKE base nonce: it tells, nothing needs it. */
  readonly iv: string;
}

/** Wraps `keyBytes` to the ring's raw public key. Throws `invalid` for one that nothing can be sealed to. */
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
 * The key bytes, by a private key of X25519 or a seed of X-Wing, 32 bytes either; undefined when it was wrapped to
 * another ring, for another key or service, or altered. Throws `unavailable` where there is no Web Crypto.
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

/** How a key is wrapped; undefined for what is no wrapped key of 32 bytes. */
export function kemOf(wrapped: string): Kem | undefined {
  return kemOfLength(fromBase64(wrapped)?.length ?? 0);
}

/** Whether it is as long as a key of 32 bytes is that was wrapped so. */
export function isWrapping(kem: Kem, wrapped: string): boolean {
  return fromBase64(wrapped)?.length === (kem === 'x25519' ? 32 : xWingKem.encLength) + 32 + 16;
}

/** An encapsulated key and a tag at least. */
function kemOfLength(length: number): Kem | undefined {
  if (length >= xWingKem.encLength + 16) return 'mlkem768-x25519';
  return length >= 48 ? 'x25519' : undefined;
}
