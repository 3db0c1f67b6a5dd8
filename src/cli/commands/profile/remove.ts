// `kms profile remove`.
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { printJson, printLine } from '../../output.ts';
import { checkedProfileName, removeProfile } from '../../profiles.ts';

export async function run(cli: Cli): Promise<void> {
  const name = checkedProfileName(cli.arg(0));
  await confirm(cli, `removes the profile ${name} and the copy of the API key in it`, { here: true });
  const wasDefault = await removeProfile(cli.io, name);
  if (cli.json) return printJson(cli, { name, removed: true, wasDefault });
  await printLine(cli, `${name} is removed${wasDefault ? '; no profile is used by default any more' : ''}`);
}
