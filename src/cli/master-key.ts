// Where commands that open an appliance themselves find its master key. What the seal in a data directory says of that
// is followed where somebody named the directory.
import type { KeySources } from '../custody/key-sources.ts';
import type { Cli } from './command.ts';
import { givenPassphrase, readSecret } from './secrets.ts';
import { namedDirectory, sharedStore } from './target.ts';

/** Where a command that opens the data directory itself finds the master key. Only a person at a terminal is asked. */
export async function keySources(cli: Cli): Promise<Omit<KeySources, 'keyFile'>> {
  const { stdin, stderr } = cli.io;
  return {
    ...(await serverKeySources(cli)),
    ...(stdin.isTTY && stderr.isTTY && { askPassphrase: () => readSecret(cli, 'passphrase of the master key') }),
  };
}

/** Of a server, which asks nobody. */
export async function serverKeySources(cli: Cli): Promise<Omit<KeySources, 'keyFile'>> {
  const { inDatabase, unnamedDirectory } = await import('../custody/key-sources.ts');
  const ofDirectory = namedDirectory(cli) === undefined ? unnamedDirectory : 'run';
  return {
    appliance: cli.globals.get('--expect-appliance'),
    env: (name) => cli.io.env[name],
    passphrase: () => givenPassphrase(cli),
    commands: sharedStore(cli) === undefined ? ofDirectory : inDatabase,
  };
}
