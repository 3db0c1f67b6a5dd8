// Deleting a keyring, bringing it back within its 30 days, and erasing it after them.
import { KmsError } from '../errors.ts';
import type { Context } from './context.ts';
import { type KeyRing, keyRing } from './keyring-wire.ts';
import { needRoom } from './quotas.ts';
import { findRing } from './ring-lookup.ts';
import { ringNameTaken } from './ring-making.ts';

/** How long a deleted ring can be brought back, in milliseconds. */
export const restorableFor = 30 * 24 * 60 * 60 * 1000;

/** Its name is free at once. Throws `conflict` while an active API key other than the caller's names it in its flags. */
export async function deleteKeyring(
  { tx, caller, world }: Context,
  input: { readonly name: string },
): Promise<{ name: string; id: string }> {
  const ring = await findRing(tx, 'ks', { name: input.name });
  if (await tx.apiKeys.isRingUsed(ring.name, caller.id)) {
    throw new KmsError('conflict', 'active API keys still use this keyring', {
      hint: 'disable them, or take the flags that name the keyring from them',
    });
  }
  await tx.rings.markDeleted(ring.id, world.now());
  return { name: ring.name, id: ring.id };
}

export async function restoreKeyring(ctx: Context, input: { readonly id: string }): Promise<{ ring: KeyRing }> {
  const { tx, world } = ctx;
  const ring = await tx.rings.byId('ks', input.id);
  if (ring?.deletedAt === undefined || isExpired(ring.deletedAt, world.now())) {
    throw new KmsError('not-found', 'there is no deleted keyring of this id to restore');
  }
  if (await tx.rings.byName('ks', ring.name)) throw ringNameTaken('name');
  await needRoom(ctx, 'keyrings', () => tx.rings.count());
  await tx.rings.unmarkDeleted(ring.id);
  return { ring: keyRing(ring) };
}

/** Erases the rings whose 30 days are over, with their keys; answers how many. Nobody calls it: the appliance does, now and then. */
export async function purgeExpired({ tx, world }: Pick<Context, 'tx' | 'world'>): Promise<number> {
  const ids = await tx.rings.deletedUntil(world.now() - restorableFor);
  for (const id of ids) await tx.rings.erase(id);
  return ids.length;
}

function isExpired(deletedAt: number, now: number): boolean {
  return deletedAt <= now - restorableFor;
}
