// `kms activity head`: what an auditor keeps elsewhere, so that nothing up to here can be taken back unseen.
import type { Cli } from '../../cli.ts';
import { headLabels } from '../../head-file.ts';
import { withLocal } from '../../local.ts';
import { type Pair, printThing } from '../../output.ts';

type Head = Readonly<Record<(typeof headLabels)[keyof typeof headLabels], string | number>>;

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const head = await ask<Head>('GET', '/local/activity/head');
    const pairs = Object.entries(headLabels).map(([label, field]): Pair => [label, head[field]]);
    await printThing(cli, head, pairs);
  });
}
