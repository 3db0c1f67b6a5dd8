// `kms asset show`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { assetPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const asset = await client.getAsset({ id: cli.arg(0) });
    await printThing(cli, asset, assetPairs(asset));
  });
}
