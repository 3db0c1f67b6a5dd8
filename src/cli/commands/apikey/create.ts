// `kms apikey create`.
import { uidQuery } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { say } from '../../io.ts';
import { printThing } from '../../output.ts';
import { apiKeyPairs, flagsOf } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const accountId = cli.needed('--account');
  const input = given({ accountId, ...uidQuery(accountId), flags: await flagsOf(cli), props: cli.object('--props') });
  await withClient(cli, async (client) => {
    const key = await client.createApiKey(input);
    await printThing(cli, key, [['key', key.key], ...apiKeyPairs(key)]);
    await say(cli.io, 'the key is shown this once: put it into a file that only its user can read');
  });
}
