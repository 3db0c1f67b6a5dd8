// `kms apikey revoke`: sets a key inactive. `kms apikey update --active true` takes it back.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.updateApiKey({ apikeyid: cli.arg(0), op: 'merge', active: false });
    if (cli.json) await printJson(cli, key);
    else
      await printLine(
        cli,
        `${key.keyid} is inactive; \`kms apikey update ${key.keyid} --active true\` takes that back`,
      );
  });
}
