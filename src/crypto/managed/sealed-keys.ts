// Managed keys at rest: each sealed under a key of the tenant, and bound to its managed key, version and type
// (docs/formats.md).
import { openXChaCha, sealXChaCha } from '../aead.ts';
import { concatBytes, fromBase64, toBase64, utf8 } from '../bytes.ts';
import { tagLength } from './ciphers.ts';

/** The managed key and version that a key belongs to. */
export interface KeyPlace {
  readonly keyId: string;
  /** From 1 on. */
  readonly version: number;
}

interface Format {
  readonly label: string;
  /** Name of the type; undefined for a type that the format does not know. */
  readonly typeName: (type: string) => string | undefined;
}

/** Keys made as transit rings were sealed in format 1, under the names that Vault has for their types. */
const formats: ReadonlyMap<number, Format> = new Map([
  [
    1,
    {
      label: 'kms/transit/key/1',
      typeName: (type: string) =>
        type === 'aes256-gcm'
          ? 'aes256-gcm96'
          : ['chacha20-poly1305', 'ed25519', 'ecdsa-p256'].find((known) => known === type),
    },
  ],
  [2, { label: 'kms/managed-key/1', typeName: (type: string) => type }],
]);
const format = 2;
const nonceLength = 24;

/** Base64 of the format's number, a nonce and the ciphertext. */
export function sealKey(
  sealing: Uint8Array,
  place: KeyPlace,
  type: string,
  key: Uint8Array,
  random: (length: number) => Uint8Array,
): string {
  const nonce = random(nonceLength);
  const sealed = sealXChaCha(sealing, nonce, key, placeBytes('kms/managed-key/1', place, utf8(type)));
  return toBase64(concatBytes(Uint8Array.of(format), nonce, sealed));
}

/** Undefined if it was sealed for another key, version or type, or altered. */
export function openKey(sealing: Uint8Array, place: KeyPlace, type: string, text: string): Uint8Array | undefined {
  const bytes = fromBase64(text);
  const known = formats.get(bytes?.[0] ?? 0);
  const typeName = known?.typeName(type);
  if (!bytes || !known || typeName === undefined || bytes.length < 1 + nonceLength + tagLength) return undefined;
  const associated = placeBytes(known.label, place, utf8(typeName));
  return openXChaCha(sealing, bytes.slice(1, 1 + nonceLength), bytes.subarray(1 + nonceLength), associated);
}

/** A unique encoding of each place: neither label nor id contains a zero byte. */
export function placeBytes(label: string, { keyId, version }: KeyPlace, rest: Uint8Array): Uint8Array {
  const number = new Uint8Array(4);
  new DataView(number.buffer).setUint32(0, version);
  return concatBytes(utf8(`${label}\0${keyId}\0`), number, rest);
}
