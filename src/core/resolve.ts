// What a hash or a header says, looked up: which ring and key, and whether a header is as it was made.
import { KmsError } from '../errors.ts';
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { Ring } from '../store/tables/rings.ts';
import type { Context } from './context.ts';
import { findRing } from './ring-lookup.ts';
import { readHash, readHeader } from './sealed.ts';

export interface HeaderInfo {
  readonly valid: boolean;
  readonly version: number;
  readonly hasSignedAsset: boolean;
  readonly hash: string;
}

export async function hashInfo(
  ctx: Context,
  input: { readonly hash: string },
): Promise<{ ringId: string; keyId: string }> {
  const { ring, key } = await resolveHash(ctx, input.hash);
  return { ringId: ring.id, keyId: key.id };
}

/** Ring and key behind a hash. Throws `invalid` when it cannot be read, `not-found` when ring or key is gone. */
export async function resolveHash({ tx, tenant }: Context, hash: string): Promise<{ ring: Ring; key: RingKey }> {
  const reference = readHash(tenant.keys, hash);
  if (!reference) throw new KmsError('invalid', 'the hash is not one of this service, or was altered');
  const ring = await findRing(tx, 'ks', { id: reference.ringId });
  const key = await tx.ringKeys.byId(ring.id, reference.keyId);
  if (!key) throw new KmsError('not-found', 'the key is gone');
  return { ring, key };
}

/**
 * Throws `not-found` for what is no header of this tenant, or one whose ring is gone; `valid` tells whether it was altered.
 * A header whose hash does not open is another tenant's as much as an altered one: the two cannot be told apart.
 */
export async function headerInfo({ tx, tenant }: Context, input: { readonly header: string }): Promise<HeaderInfo> {
  const decoded = readHeader(tenant.keys, input.header);
  const reference = decoded && readHash(tenant.keys, decoded.hash);
  if (!reference) throw new KmsError('not-found', 'this is not a header of this service');
  await findRing(tx, 'ks', { id: reference.ringId });
  const valid = decoded.intact && (decoded.asset?.intact ?? true);
  return { valid, version: decoded.version, hasSignedAsset: decoded.hasAsset, hash: decoded.hash };
}
