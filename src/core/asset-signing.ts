// Signing a version of an asset together with the hash of one encrypt: Ed25519 over the canonical JSON (RFC 8785) of id,
// version, parents, data and hash, under the tenant's signing seed of the epoch that the hash names.
import { canonicalJson } from '../crypto/canonical-json.ts';
import { ed25519PublicKey, ed25519Sign, ed25519Verify } from '../crypto/ed25519.ts';
import { utf8 } from '../crypto/encoding.ts';
import { epochOfHash, keyHashBytes } from '../crypto/key-hash.ts';
import { KmsError } from '../errors.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { AssetContent } from '../store/tables/assets.ts';

export interface SignedVersion extends AssetContent {
  readonly id: string;
  readonly version: number;
  readonly hash: string;
}

/** 64 bytes. */
export function signAsset(keys: TenantKeys, signed: SignedVersion): Uint8Array {
  return ed25519Sign(seedOf(keys, signed.hash), message(signed));
}

export function verifyAsset(keys: TenantKeys, signed: SignedVersion, signature: Uint8Array): boolean {
  return ed25519Verify(publicKeyOf(seedOf(keys, signed.hash)), message(signed), signature);
}

function message({ id, version, parents, data, hash }: SignedVersion): Uint8Array {
  return utf8(canonicalJson({ id, version, parents, data, hash }));
}

function seedOf(keys: TenantKeys, hash: string): Uint8Array {
  const bytes = keyHashBytes(hash);
  if (!bytes) throw new KmsError('internal', 'expected a hash of this version');
  return keys.key('asset-signing', epochOfHash(bytes));
}

/** A public key costs as much as a signature, so each is derived once for as long as its seed is held. */
const publicKeys = new WeakMap<Uint8Array, Uint8Array>();

function publicKeyOf(seed: Uint8Array): Uint8Array {
  let key = publicKeys.get(seed);
  if (!key) {
    key = ed25519PublicKey(seed);
    publicKeys.set(seed, key);
  }
  return key;
}
