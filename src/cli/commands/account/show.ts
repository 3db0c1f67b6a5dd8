// `kms account show`.
import { uidQuery } from '../../account-id.ts';
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { accountPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const id = cli.arg(0);
  await withClient(cli, async (client) => {
    const account = await client.getAccount({ id, ...uidQuery(id) });
    await printThing(cli, account, accountPairs(account));
  });
}
