// `kms activity show`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { activityPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const activity = await client.getActivity({ id: cli.arg(0) });
    await printThing(cli, activity, activityPairs(activity));
  });
}
