// The limits of a tenant. A count is taken only where there is a limit.
import { KmsError } from '../errors.ts';
import type { Context, Limits } from './context.ts';

const nouns: Readonly<Record<keyof Limits, string>> = {
  keyrings: 'keyrings',
  keysPerRing: 'keys in a keyring',
  users: 'users',
  accounts: 'accounts',
  apikeys: 'API keys',
  assets: 'assets',
};

/** Throws `quota` when there is no room for one more. */
export async function needRoom(
  { tenant }: Pick<Context, 'tenant'>,
  kind: keyof Limits,
  count: () => Promise<number>,
): Promise<void> {
  const most = tenant.limits[kind];
  if (most === undefined || (await count()) < most) return;
  throw new KmsError('quota', `the limit of ${most} ${nouns[kind]} is reached`);
}
