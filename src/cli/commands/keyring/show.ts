// `kms keyring show`.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { ringPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getKeyring(given({ ringname: cli.arg(0), id: cli.isOn('--id') || undefined }));
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}
