// Commands for the aliases of managed keys: further names by which software finds them.
import type { CliOf } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { keyAlias } from '../grammar/key.ts';
import { printJson, printLine } from '../output.ts';

export async function add(cli: CliOf<typeof keyAlias.add>): Promise<void> {
  const input = { key: cli.get('<NAME>'), alias: cli.get('<ALIAS>') };
  await withClient(cli, async (client) => {
    const answer = await client.addManagedKeyAlias(input);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${input.alias} is a name of the managed key ${answer.key.displayName}`);
  });
}

export async function remove(cli: CliOf<typeof keyAlias.remove>): Promise<void> {
  const input = { key: cli.get('<NAME>'), alias: cli.get('<ALIAS>') };
  const details = () => detailsFrom(cli, (client) => client.getManagedKey({ key: input.key }).then(() => []));
  await confirm(cli, `removes the alias ${input.alias}: software that names ${input.key} by it finds it no longer`, {
    details,
  });
  await withClient(cli, async (client) => {
    const answer = await client.removeManagedKeyAlias(input);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${input.alias} is no longer a name of the managed key ${answer.key.displayName}`);
  });
}
