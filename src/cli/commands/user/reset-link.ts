// `kms user reset-link`: where no mail goes out, the operator hands the link over.
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';

interface ResetLink {
  readonly username: string;
  readonly resetUrl: string;
  readonly expiresAt: string;
}

export async function run(cli: Cli): Promise<void> {
  const body = { username: cli.arg(0), ...(cli.isOn('--by-email') ? { email: true } : {}) };
  await withLocal(cli, async ({ ask }) => {
    const link = await ask<ResetLink>('POST', '/local/reset-link', body);
    await printThing(cli, link, [
      ['username', link.username],
      ['reset link', link.resetUrl],
      ['works until', link.expiresAt],
    ]);
    await say(cli.io, 'the link works once and lets in whoever has it: hand it to that person alone');
  });
}
