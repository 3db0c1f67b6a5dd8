// `kms user delete`.
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const username = cli.arg(0);
  await confirm(
    cli,
    `deletes the user ${username} for good, ends the user's sessions and disables the user's API keys`,
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteUser(cli.isOn('--id') ? { username, id: true } : { username });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.message);
  });
}
