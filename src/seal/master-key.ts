// Values derived from a master key, among them the commitment that identifies it and the chain key, with which a later
// master key proves its descent from this one. Format: docs/seal-format.md.
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { hkdfSha256, hmacSha256, sha256 } from '../crypto/hash.ts';

/** Hex digits of a commitment. */
export const commitmentLength = 64;

/**
 * The key known only to holders of this master key or of one descended from it: each seal keeps it, wrapped, as long as
 * a custodian's proof refers to this master key. Nothing is encrypted with it.
 */
export function chainKeyOf(masterKey: Uint8Array): Uint8Array {
  return hkdfSha256(masterKey, 'kms/master/v1/chain', 32);
}

/** 64 hex digits that commit to a chain key, and so to its master key. */
export function commitmentTo(chainKey: Uint8Array): string {
  return toHex(sha256(concatBytes(utf8('kms/master/v1/commitment'), chainKey)));
}

/** The first 16 digits of a commitment, for comparison by eye. */
export function fingerprintOf(commitment: string): string {
  return commitment.slice(0, 16);
}

export function wrapKeyOf(masterKey: Uint8Array): Uint8Array {
  return hkdfSha256(masterKey, 'kms/master/v1/wrap', 32);
}

/** The MAC of a seal's text. */
export function sealMac(masterKey: Uint8Array, text: string): Uint8Array {
  return hmacSha256(hkdfSha256(masterKey, 'kms/master/v1/mac', 32))(utf8(text));
}
