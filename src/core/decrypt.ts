// Decrypt: from a hash or a header back to ring and key, with the verdict on the asset that the header carries.
import type { DecodedHeader } from '../crypto/header.ts';
import { KmsError } from '../errors.ts';
import type { AssetContent } from '../store/tables/assets.ts';
import { verifyAsset } from './asset-signing.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { type Key, ksKey } from './keyring-wire.ts';
import { resolveHash } from './resolve.ts';
import { readHeader } from './sealed.ts';

export interface DecryptInput {
  readonly hash?: string;
  readonly header?: string;
}

export interface SignedAsset {
  readonly valid: boolean;
  readonly id: string;
  readonly message: string;
  /** What the signed version held; empty when the signature does not verify. */
  readonly data: JsonObject;
}

export interface Decrypted {
  readonly ringId: string;
  readonly ringname: string;
  readonly key: Key;
  /** Absent where there was no header, or one without an asset. */
  readonly asset?: SignedAsset;
}

/** Throws `asset-invalid`, with the whole answer as its body, when the asset does not verify. */
export async function decrypt(ctx: Context, input: DecryptInput): Promise<Decrypted> {
  const header = input.header === undefined ? undefined : intactHeader(ctx, input.header);
  const hash = header?.hash ?? input.hash;
  if (hash === undefined) throw new KmsError('invalid', 'expected a hash or a header');
  if (input.hash !== undefined && input.hash !== hash) {
    throw new KmsError('invalid', 'the hash is not the one in the header');
  }
  const { ring, key } = await resolveHash(ctx, hash);
  const answer = { ringId: ring.id, ringname: ring.name, key: ksKey(key) };
  if (!header?.asset) return answer;
  const asset = await verdict(ctx, hash, header.asset);
  if (asset.valid) return { ...answer, asset };
  throw new KmsError('asset-invalid', asset.message, { body: { ...answer, asset } });
}

function intactHeader({ tenant }: Context, text: string): DecodedHeader {
  const header = readHeader(tenant.keys, text);
  if (!header) throw new KmsError('invalid', 'this is not a header of this service');
  if (!header.intact) throw new KmsError('invalid', 'the header was altered');
  return header;
}

async function verdict(
  ctx: Context,
  hash: string,
  { id, version, signature, intact }: NonNullable<DecodedHeader['asset']>,
): Promise<SignedAsset> {
  const invalid = (message: string): SignedAsset => ({ valid: false, id, message, data: {} });
  if (!intact) return invalid('the asset part of the header was altered');
  const content = await versionOf(ctx, id, version);
  if (!content) return invalid('the asset was deleted');
  const { data, parents } = content;
  if (!verifyAsset(ctx.tenant.keys, { id, version, parents, data, hash }, signature)) {
    return invalid('the signature does not fit the asset');
  }
  return { valid: true, id, message: `the signature of version ${version} verifies`, data };
}

async function versionOf({ tx }: Context, id: string, version: number): Promise<AssetContent | undefined> {
  const current = await tx.assets.byId(id);
  if (!current || current.version === version) return current;
  return tx.assets.olderVersion(id, version);
}
