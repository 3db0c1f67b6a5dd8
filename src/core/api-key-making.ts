// Making an API key: its secret is answered once and stored as a hash.
import { hashSecret, newApiKeySecret } from '../crypto/api-key.ts';
import { type FullApiKey, safeApiKey } from './api-key-wire.ts';
import type { Context } from './context.ts';
import { parseFlags, ringsNamed } from './flags.ts';
import type { JsonObject } from './json.ts';

export interface ApiKeyDraft {
  readonly accountId: string;
  /** The user that it belongs to. */
  readonly userId?: string | undefined;
  readonly flags: JsonObject;
  readonly props: JsonObject;
}

/** Who may make it, and whether there is room, was decided before. */
export async function makeApiKey(
  { tx, world }: Pick<Context, 'tx' | 'world'>,
  draft: ApiKeyDraft,
): Promise<FullApiKey> {
  const secret = newApiKeySecret(world.random);
  const now = world.now();
  const key = {
    id: world.newId('apik'),
    secretHash: hashSecret(secret),
    active: true,
    accountId: draft.accountId,
    userId: draft.userId,
    flagsText: JSON.stringify(draft.flags),
    rings: ringsNamed(parseFlags(draft.flags)),
    props: draft.props,
    createdAt: now,
    updatedAt: now,
  };
  await tx.apiKeys.insert(key);
  return { key: secret, ...safeApiKey(key) };
}
