// `kms apikey show`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { apiKeyPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.getApiKey({ apikeyid: cli.arg(0) });
    await printThing(cli, key, apiKeyPairs(key));
  });
}
