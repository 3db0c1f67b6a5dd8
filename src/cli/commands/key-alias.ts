// Commands for the aliases of managed keys: further names by which software finds them.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import type { CliOf } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { keyAlias } from '../grammar/key.ts';
import { printJson, printLine } from '../output.ts';

export async function add(cli: CliOf<typeof keyAlias.add>): Promise<void> {
  const input = { key: cli.get('<NAME>'), alias: cli.get('<ALIAS>') };
  const [owner] = await detailsFrom(cli, (client) => ownerOf(client, input));
  if (owner !== undefined) {
    await confirm(
      cli,
      `takes the name ${input.alias} from the managed key ${owner}: software that uses it gets ${input.key} instead`,
    );
  }
  await withClient(cli, async (client) => {
    const answer = await client.addManagedKeyAlias(input);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${input.alias} is a name of the managed key ${answer.key.displayName}`);
  });
}

interface Input {
  readonly key: string;
  readonly alias: string;
}

/** The name of another key that has the alias; none if it is free, or is the key's own. */
async function ownerOf(client: Client, { key: name, alias }: Input): Promise<readonly string[]> {
  const { key } = await client.getManagedKey({ key: name });
  if (hasAlias(key, alias)) return [];
  const owner = await client.getManagedKey({ key: alias }).catch((error) => {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  });
  return owner && hasAlias(owner.key, alias) ? [owner.key.displayName] : [];
}

function hasAlias({ aliases }: ManagedKey, alias: string): boolean {
  return aliases.some((each) => each.toLowerCase() === alias.toLowerCase());
}

export async function remove(cli: CliOf<typeof keyAlias.remove>): Promise<void> {
  const input = { key: cli.get('<NAME>'), alias: cli.get('<ALIAS>') };
  const details = () =>
    detailsFrom(cli, async (client) => {
      const { key } = await client.getManagedKey({ key: input.key });
      if (hasAlias(key, input.alias)) return [];
      throw new KmsError('not-found', `${key.displayName} has no alias ${input.alias}`, {
        hint: `\`kms key show ${key.displayName}\` lists those that it has`,
      });
    });
  await confirm(cli, `removes the alias ${input.alias}: software that names ${input.key} by it finds it no longer`, {
    details,
  });
  await withClient(cli, async (client) => {
    const answer = await client.removeManagedKeyAlias(input);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${input.alias} is no longer a name of the managed key ${answer.key.displayName}`);
  });
}
