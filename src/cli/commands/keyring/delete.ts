// `kms keyring delete`.
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const name = cli.arg(0);
  await confirm(
    cli,
    `deletes the keyring ${name}: what it encrypted cannot be decrypted until it is restored, and after 30 days never`,
    { name },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteKeyring({ name });
    if (cli.json) await printJson(cli, answer);
    else
      await printLine(
        cli,
        `${answer.name} is deleted; for 30 days \`kms keyring restore ${answer.id}\` brings it back`,
      );
  });
}
