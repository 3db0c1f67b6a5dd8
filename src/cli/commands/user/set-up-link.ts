// `kms user set-up-link`: the way into the console as long as there is no user who could invite others.
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';

interface SetUpLink {
  readonly url: string;
  readonly expiresAt: string;
}

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const link = await ask<SetUpLink>('POST', '/local/set-up-link', {});
    await printThing(cli, link, [
      ['set-up link', link.url],
      ['works until', link.expiresAt],
    ]);
    await say(cli.io, 'the link works once, and whoever opens it first may do everything: open it in a browser soon');
  });
}
