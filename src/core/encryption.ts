// Encryption: encrypt hands out the ring's active key with a fresh hash and header, and signs an asset into the header;
// decrypt and the look-ups resolve a hash or header. Encrypt is the hot path: cached look-ups, two MACs, a counter.
import type { Answer, Body } from '../api/endpoints.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { type DecodedHeader, encodeHeader, inspectHeader, shareOf } from '../crypto/header.ts';
import { type KeyReference, sealKeyHash } from '../crypto/key-hash.ts';
import { KmsError } from '../errors.ts';
import type { AssetContent } from '../store/tables/assets.ts';
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { Ring } from '../store/tables/rings.ts';
import { isSignatureOf, signAsset } from './asset-signing.ts';
import { assetAnswer, writeAsset } from './assets.ts';
import type { Context, SealedInput } from './context.ts';
import { ksKey } from './keyrings.ts';
import { readSealed } from './ring-subject.ts';
import { findRing, keyToServe } from './rings.ts';

export function encrypt(ctx: Context, input: Body<'encrypt'>): Answer<'encrypt'> {
  const key = keyToServe(ctx, input.ringname);
  ctx.tx.ringKeys.countEncrypt(key.id);
  if (input.recipient || input.asset !== undefined) return encryptWithMore(ctx, input, key);
  const { tenant, world } = ctx;
  const { ringId } = key;
  const sealed = sealKeyHash(tenant.keys, ringId, key.id, world.random);
  ctx.handsOut({ id: key.id, kind: 'encrypt' });
  const header = encodeHeader(tenant.keys, sealed);
  return { key: handed(key, input.knownKeys), ringId, hash: sealed.hash, header };
}

/** Encrypt for a recipient, or with an asset. */
function encryptWithMore(ctx: Context, input: Body<'encrypt'>, key: RingKey): Answer<'encrypt'> {
  const { tx, tenant, world } = ctx;
  const { ringId } = key;
  const ring = input.recipient ? findRing(tx, 'ks', { id: ringId }) : undefined;
  const use = ring && { isRecipient: true, isOffline: ring.offlineDecrypt };
  const sealed = { ...sealKeyHash(tenant.keys, ringId, key.id, world.random), ...(use && { use }) };
  const { hash } = sealed;
  const answer = { key: handed(key, ring ? [key.id] : input.knownKeys), ringId, hash };
  const withShare = (header: string) => ({ header, ...(ring && shared(ctx, header, ring)) });
  if (input.asset === undefined) {
    ctx.handsOut({ id: key.id, kind: 'encrypt' });
    return { ...answer, ...withShare(encodeHeader(tenant.keys, sealed)) };
  }
  const asset = writeAsset(ctx, ringId, input.asset);
  const { id, version } = asset;
  const signature = signAsset(tenant.keys, { ...asset, hash });
  const header = encodeHeader(tenant.keys, { ...sealed, asset: { id, version, signature } });
  ctx.handsOut({ id: key.id, kind: 'encrypt' });
  return { ...answer, ...withShare(header), asset: assetAnswer(asset) };
}

/** For senders without the ring's private key: the appliance's share of the file key, and the public key to wrap to. */
function shared(ctx: Context, header: string, { publicKey }: Ring) {
  return { ...share(ctx, header), publicKey };
}

/** Giving out a share is recorded with the request. */
function share(ctx: Context, header: string): { readonly share: string } {
  const { tenant } = ctx;
  ctx.note({ recipient: true });
  return { share: toBase64(shareOf(tenant.keys, header)) };
}

/** Omits the wrapped bytes if the caller already has them. */
function handed(key: RingKey, known: readonly string[] | undefined): Answer<'encrypt'>['key'] {
  if (!known?.includes(key.id)) return ksKey(key);
  const { keyData: _, ...bare } = ksKey(key);
  return bare;
}

/** Throws `asset-invalid`, with the whole answer as its body, if the asset does not verify. */
export function decrypt(ctx: Context, input: Body<'decrypt'>): Answer<'decrypt'> {
  const sealed = sealedOf(ctx, input);
  const header = input.header === undefined ? undefined : intactHeader(sealed);
  if (input.hash === undefined && !header) throw new KmsError('invalid', 'expected a hash or a header');
  if (input.hash !== undefined && header && input.hash !== hashIn(input.header)) {
    throw new KmsError('invalid', 'the hash is not the one in the header');
  }
  const { ring, key } = resolve(ctx, sealed);
  const answer = {
    ringId: ring.id,
    ringname: ring.name,
    key: handed(key, input.knownKeys),
    ...(header?.isRecipient && input.header !== undefined && share(ctx, input.header)),
  };
  if (header?.asset) return withAsset(ctx, answer, key, hashIn(input.header), header.asset);
  ctx.handsOut({ id: key.id, kind: 'decrypt' });
  return answer;
}

function withAsset(
  ctx: Context,
  answer: Answer<'decrypt'>,
  key: RingKey,
  hash: string,
  signed: NonNullable<DecodedHeader['asset']>,
): Answer<'decrypt'> {
  const asset = verdict(ctx, hash, signed);
  ctx.handsOut({ id: key.id, kind: 'decrypt' });
  if (asset.valid) return { ...answer, asset };
  // A refusal is at most 64 KiB long: props that could make it longer are left out.
  const { props } = answer.key;
  const shown = JSON.stringify(props).length <= mostPropsRefused ? props : {};
  throw new KmsError('asset-invalid', asset.message, {
    body: { ...answer, key: { ...answer.key, props: shown }, asset },
  });
}

/** The hash in a header that was decoded before. */
function hashIn(header: string | undefined): string {
  const hash = header === undefined ? undefined : inspectHeader(header)?.hash;
  if (hash === undefined) throw new KmsError('internal', 'expected a header that was decoded');
  return hash;
}

/** Characters, each of at most three bytes. */
const mostPropsRefused = 16_384;

/** The sealed input as read during authorization. */
function sealedOf({ sealed, tenant }: Context, input: Body<'decrypt'>): SealedInput {
  return sealed ?? readSealed(tenant.keys, input);
}

function intactHeader({ header }: SealedInput): DecodedHeader {
  if (!header) throw new KmsError('invalid', 'this is not a header of this service');
  if (!header.intact) throw new KmsError('invalid', 'the header was altered');
  return header;
}

function verdict(
  ctx: Context,
  hash: string,
  { id, version, signature, intact }: NonNullable<DecodedHeader['asset']>,
): NonNullable<Answer<'decrypt'>['asset']> {
  const invalid = (message: string): NonNullable<Answer<'decrypt'>['asset']> => ({
    valid: false,
    id,
    message,
    data: {},
  });
  if (!intact) return invalid('the asset part of the header was altered');
  const content = versionOf(ctx, id, version);
  if (!content) return invalid('the asset was deleted');
  const { data, parents } = content;
  if (!isSignatureOf(ctx.tenant.keys, { id, version, parents, data, hash }, signature)) {
    return invalid('the signature does not fit the asset');
  }
  return { valid: true, id, message: `the signature of version ${version} verifies`, data };
}

function versionOf({ tx }: Context, id: string, version: number): AssetContent | undefined {
  const current = tx.assets.byId(id);
  if (!current || current.version === version) return current;
  return tx.assets.olderVersion(id, version);
}

export function hashInfo(
  ctx: Context,
  input: { readonly hash: string },
): { readonly ringId: string; readonly keyId: string } {
  const { ring, key } = resolve(ctx, sealedOf(ctx, input));
  return { ringId: ring.id, keyId: key.id };
}

/** Ring and key behind hash or header. Throws `invalid` if it cannot be read, `not-found` if ring or key is gone. */
function resolve({ tx }: Context, sealed: SealedInput): { ring: Ring; key: RingKey } {
  const { reference } = sealed;
  if (!reference) throw new KmsError('invalid', 'the hash is not one of this service, or was altered');
  const ring = ringOf(tx, reference, sealed);
  const key = tx.ringKeys.byId(ring.id, reference.keyId);
  if (!key) throw new KmsError('not-found', 'the key is gone');
  return { ring, key };
}

/**
 * Throws `not-found` for anything but a header of this tenant whose ring exists; `valid` tells whether it was altered.
 * A header whose hash does not open may be altered or another tenant's: the two cannot be told apart.
 */
export function headerInfo(ctx: Context, input: { readonly header: string }): Answer<'inspectHeader'> {
  const sealed = sealedOf(ctx, input);
  const { header: decoded, reference } = sealed;
  if (!decoded || !reference) throw new KmsError('not-found', 'this is not a header of this service');
  ringOf(ctx.tx, reference, sealed);
  const valid = decoded.intact && (decoded.asset?.intact ?? true);
  return { valid, version: decoded.version, hasSignedAsset: decoded.hasAsset, hash: hashIn(input.header) };
}

/** The ring already looked up, or a look-up now. Throws `not-found` if it is deleted or gone. */
function ringOf(tx: Context['tx'], { ringId }: KeyReference, { ring }: SealedInput): Ring {
  return ring && ring.deletedAt === undefined ? ring : findRing(tx, 'ks', { id: ringId });
}
