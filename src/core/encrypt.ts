// Encrypt: hands out the ring's active key with a hash and a header of their own, and signs an asset into the header. This is
// the hot path: look-ups that the store remembers, two MACs, a count.
import { encodeHeader } from '../crypto/header.ts';
import { sealKeyHash } from '../crypto/key-hash.ts';
import { KmsError } from '../errors.ts';
import { signAsset } from './asset-signing.ts';
import { type AssetInput, writeAsset } from './asset-writing.ts';
import { type AssetAnswer, assetAnswer } from './assets.ts';
import type { Context } from './context.ts';
import { type Key, ksKey } from './keyring-wire.ts';
import { findRing, unknownRing } from './ring-lookup.ts';
import { rotateRing } from './ring-making.ts';

export interface EncryptInput {
  readonly ringname: string;
  readonly asset?: AssetInput;
}

export interface Encrypted {
  readonly key: Key;
  readonly ringId: string;
  readonly hash: string;
  readonly header: string;
  readonly asset?: AssetAnswer;
}

export async function encrypt(ctx: Context, input: EncryptInput): Promise<Encrypted> {
  const { tx, tenant, world } = ctx;
  const active = await tx.rings.activeKeyOf('ks', input.ringname.toLowerCase());
  if (!active) throw unknownRing();
  const { ringId } = active;
  const stored = await tx.ringKeys.byId(ringId, active.keyId);
  if (!stored) throw new KmsError('corrupt', 'the active key of a stored keyring is not there');
  // A key that has served all the encrypts that it may gives way to a new one.
  const isSpent = tx.ringKeys.encryptCount(stored) >= active.maxEncryptCount;
  const key = isSpent ? await rotateRing(ctx, await findRing(tx, 'ks', { id: ringId })) : stored;
  await tx.ringKeys.countEncrypt(key.id);
  const sealed = sealKeyHash(tenant.keys, ringId, key.id, world.random);
  const { hash } = sealed;
  const answer = { key: ksKey(key), ringId, hash };
  if (input.asset === undefined) return { ...answer, header: encodeHeader(tenant.keys, sealed) };

  const asset = await writeAsset(ctx, ringId, input.asset);
  const { id, version } = asset;
  const signature = signAsset(tenant.keys, { ...asset, hash });
  const header = encodeHeader(tenant.keys, { ...sealed, asset: { id, version, signature } });
  return { ...answer, header, asset: assetAnswer(asset) };
}
