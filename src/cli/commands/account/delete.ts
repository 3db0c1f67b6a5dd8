// `kms account delete`.
import { uidQuery } from '../../account-id.ts';
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const id = cli.arg(0);
  await confirm(cli, `deletes the account ${id} and its API keys for good`);
  await withClient(cli, async (client) => {
    const account = await client.deleteAccount({ id, ...uidQuery(id) });
    if (cli.json) await printJson(cli, account);
    else await printLine(cli, `${account.uid} and its API keys are deleted`);
  });
}
