// Sources of the master key for commands that open an appliance themselves. The sources named in a data directory's
// seal are followed only if the directory was named explicitly.
import type { KeySources } from '../custody/key-sources.ts';
import type { Cli } from './command.ts';
import { givenPassphrase, readSecret } from './secrets.ts';
import { namedDirectory, sharedStore } from './target.ts';

/** Sources for a command that opens the data directory itself. Only a person at a terminal is asked. */
export async function keySources(cli: Cli): Promise<Omit<KeySources, 'keyFile'>> {
  const { stdin, stderr } = cli.io;
  return {
    ...(await serverKeySources(cli)),
    ...(stdin.isTTY && stderr.isTTY && { askPassphrase: () => readSecret(cli, 'passphrase of the master key') }),
  };
}

/** Sources for a server, which asks no one. */
export async function serverKeySources(cli: Cli): Promise<Omit<KeySources, 'keyFile'>> {
  const { inDatabase, unnamedDirectory } = await import('../custody/key-sources.ts');
  const ofDirectory = namedDirectory(cli) === undefined ? unnamedDirectory : 'run';
  return {
    appliance: cli.globals.get('--expect-appliance'),
    env: (name) => cli.io.env[name],
    signal: cli.io.signal,
    passphrase: () => givenPassphrase(cli),
    commands: sharedStore(cli) === undefined ? ofDirectory : inDatabase,
  };
}
