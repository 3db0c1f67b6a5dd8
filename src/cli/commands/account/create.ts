// `kms account create`.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { accountPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const input = given({ uid: cli.arg(0), notes: cli.text('--notes'), props: cli.object('--props') });
  await withClient(cli, async (client) => {
    const account = await client.createAccount(input);
    await printThing(cli, account, accountPairs(account));
  });
}
