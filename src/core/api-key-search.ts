// Which API keys use a keyring.
import type { Page, PageRequest } from '../store/sql.ts';
import { type SafeApiKey, safeApiKey } from './api-key-wire.ts';
import { missingFlag } from './authorize.ts';
import type { Context } from './context.ts';
import { flagName } from './flags.ts';
import { mapPage } from './pages.ts';
import { type RingRef, unknownRing } from './ring-lookup.ts';

export interface SearchByRingInput {
  readonly ring: RingRef;
  /** Also the keys that a wildcard lets in. */
  readonly wildcard: boolean;
  readonly page: PageRequest;
}

/** Keys whose true flags name the ring, the oldest first. */
export async function searchApiKeysByRing(ctx: Context, input: SearchByRingInput): Promise<Page<SafeApiKey>> {
  const name = await nameToSearch(ctx, input.ring);
  return mapPage(await ctx.tx.apiKeys.listByRing(name, input.wildcard, input.page), safeApiKey);
}

/** Whoever may not read the ring is not told whether it exists: a name is searched as it is, an id is refused. */
async function nameToSearch({ tx, caller }: Context, ref: RingRef): Promise<string> {
  const found = 'name' in ref ? await tx.rings.byName('ks', ref.name.toLowerCase()) : await tx.rings.byId('ks', ref.id);
  const mayRead = caller.flags.allows('keyring.read', 'name' in ref ? ref.name : found?.name);
  if (!mayRead && 'id' in ref) throw missingFlag(flagName('keyring.read'));
  if (!mayRead && 'name' in ref) return ref.name.toLowerCase();
  if (found?.deletedAt !== undefined || !found) throw unknownRing();
  return found.name;
}
