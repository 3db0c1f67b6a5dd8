// Signatures over a version of an asset together with the hash of one encrypt: Ed25519 over the canonical JSON (RFC
// 8785) of id, version, parents, data and hash, under the tenant's signing seed of the epoch that the hash names.

import type { SigningKey } from '../api/assets.ts';
import { concatBytes, toBase64, utf8 } from '../crypto/bytes.ts';
import { canonicalJson } from '../crypto/canonical-json.ts';
import { ed25519PublicKey, ed25519Sign, ed25519ToSpki, isEd25519Signature } from '../crypto/ed25519.ts';
import { sha256 } from '../crypto/fast-hash.ts';
import { epochOfHash, keyHashBytes } from '../crypto/key-hash.ts';
import { timeOfId } from '../crypto/ulid.ts';
import { KmsError } from '../errors.ts';
import { timestamp } from '../model/timestamp.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Store } from '../store/port.ts';
import type { AssetContent } from '../store/tables/assets.ts';
import type { Tenant } from './context.ts';
import { localCaller } from './credential.ts';

interface SignedVersion extends AssetContent {
  readonly id: string;
  readonly version: number;
  readonly hash: string;
}

/** 64 bytes. */
export function signAsset(keys: TenantKeys, signed: SignedVersion): Uint8Array {
  return ed25519Sign(seedOf(keys, signed.hash), message(signed));
}

/**
 * Cache of valid signatures, per seed: SHA-256 of signature and message. Decrypting a header again then costs a hash
 * instead of a signature. Invalid ones are not cached, so they cannot crowd out valid ones.
 */
const fitting = new WeakMap<Uint8Array, Set<string>>();
const mostFitting = 512;

/**
 * Whether this is the signature made by `signAsset`. The seed is at hand, so it signs again instead of verifying with
 * the public key.
 */
export function isSignatureOf(keys: TenantKeys, signed: SignedVersion, signature: Uint8Array): boolean {
  if (signature.length !== 64) return false;
  const seed = seedOf(keys, signed.hash);
  const text = message(signed);
  const known = fitting.get(seed) ?? new Set();
  const pair = toBase64(sha256(concatBytes(signature, text)));
  if (known.has(pair)) return true;
  if (!isEd25519Signature(seed, text, signature)) return false;
  for (const oldest of known) {
    if (known.size < mostFitting) break;
    known.delete(oldest);
  }
  fitting.set(seed, known.add(pair));
  return true;
}

/** Keys of all epochs that headers may name, oldest first, including retired ones, whose headers verify for ever. */
export async function signingKeys(
  { id, keys }: Pick<Tenant, 'id' | 'keys'>,
  store: Pick<Store, 'activity'>,
): Promise<SigningKey[]> {
  const { epochs } = keys;
  const times = await rekeyTimes(store, epochs.length);
  // The first key was made with the tenant.
  const first = timeOfId('tenant', id);
  if (first !== undefined) times.set(1, first);
  return epochs.map((epoch) => {
    const publicKey = toBase64(ed25519ToSpki(ed25519PublicKey(keys.key('asset-signing', epoch))));
    const time = times.get(epoch);
    return { epoch, publicKey, createdAt: time === undefined ? null : timestamp(time) };
  });
}

/** When each later epoch began. Its rekey was recorded before it began, under the previous epoch. */
async function rekeyTimes(store: Pick<Store, 'activity'>, epochs: number): Promise<Map<number, number>> {
  const times = new Map<number, number>();
  if (epochs < 2) return times;
  const filter = { keyids: [localCaller.id], action: 'system.tenant', props: { operation: 'rekey' } };
  let after: number | undefined;
  do {
    const page = await store.activity.search(filter, { limit: 1000, ...(after !== undefined && { after }) });
    for (const { createdAt, props } of page.items) {
      // Newest first: of several records under one epoch, only the last led to a new key.
      if (typeof props.epoch === 'number' && !times.has(props.epoch + 1)) times.set(props.epoch + 1, createdAt);
    }
    after = page.next;
  } while (after !== undefined);
  return times;
}

function message({ id, version, parents, data, hash }: SignedVersion): Uint8Array {
  return utf8(canonicalJson({ id, version, parents, data, hash }));
}

function seedOf(keys: TenantKeys, hash: string): Uint8Array {
  const bytes = keyHashBytes(hash);
  if (!bytes) throw new KmsError('internal', 'expected a hash of this version');
  return keys.key('asset-signing', epochOfHash(bytes));
}
