// The keys of a keyring of the key service: list, get, rotate.
import { KmsError } from '../errors.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { RingService } from '../store/tables/rings.ts';
import type { Context } from './context.ts';
import { type Key, type KeyListItem, keyListItem, ksKey } from './keyring-wire.ts';
import { mapPage } from './pages.ts';
import { findRing, type RingRef } from './ring-lookup.ts';
import { rotateRing } from './ring-making.ts';

/** The oldest first. */
export async function listKeys(
  { tx }: Context,
  input: { readonly ring: RingRef; readonly page: PageRequest },
): Promise<Page<KeyListItem>> {
  const ring = await findRing(tx, 'ks', input.ring);
  return mapPage(await tx.ringKeys.list(ring.id, input.page), keyListItem);
}

export async function getKey(ctx: Context, input: { readonly ring: RingRef; readonly keyId: string }): Promise<Key> {
  return ksKey(await findKey(ctx, 'ks', input));
}

export async function rotateKeyring(
  ctx: Context,
  input: { readonly ringname: string; readonly algo?: 'aes256' },
): Promise<{ key: Key }> {
  const ring = await findRing(ctx.tx, 'ks', { name: input.ringname });
  return { key: ksKey(await rotateRing(ctx, ring)) };
}

/** The key of that ring. Throws `not-found`, for the ring or the key. */
export async function findKey(
  { tx }: Context,
  service: RingService,
  input: { readonly ring: RingRef; readonly keyId: string },
): Promise<RingKey> {
  const ring = await findRing(tx, service, input.ring);
  const key = await tx.ringKeys.byId(ring.id, input.keyId);
  if (!key) throw new KmsError('not-found', 'the keyring has no such key');
  return key;
}
