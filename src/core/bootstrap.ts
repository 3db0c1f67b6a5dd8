// The first things of a new tenant: an account with uid `admin` and its root API key.
import { type AccountAnswer, accountAnswer, makeAccount } from './accounts.ts';
import { makeApiKey } from './api-key-making.ts';
import type { FullApiKey } from './api-key-wire.ts';
import type { Context } from './context.ts';

export async function bootstrap(
  ctx: Pick<Context, 'tx' | 'world'>,
): Promise<{ account: AccountAnswer; apiKey: FullApiKey }> {
  const account = await makeAccount(ctx, { uid: 'admin' });
  const apiKey = await makeApiKey(ctx, { accountId: account.id, flags: { '*': true }, props: {} });
  return { account: accountAnswer(account), apiKey };
}
