// `kms keyring rotate`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const ringname = cli.arg(0);
  await withClient(cli, async (client) => {
    const answer = await client.rotateKeyring({ ringname });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${ringname} has the new active key ${answer.key.id}`);
  });
}
