// `kms asset delete`.
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const id = cli.arg(0);
  await confirm(cli, `deletes the asset ${id} for good: headers that carry it will no longer verify`);
  await withClient(cli, async (client) => {
    const asset = await client.deleteAsset({ id });
    if (cli.json) await printJson(cli, asset);
    else await printLine(cli, `${asset.id} is deleted`);
  });
}
