// `kms user show`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { userPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const username = cli.arg(0);
  await withClient(cli, async (client) => {
    const user = await client.getUser(cli.isOn('--by-email') ? { username, email: true } : { username });
    await printThing(cli, user, userPairs(user));
  });
}
