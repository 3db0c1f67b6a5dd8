// `kms keyring restore`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { ringPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.restoreKeyring({ id: cli.arg(0) });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}
