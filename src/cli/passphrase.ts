// The passphrase of the master key, as somebody gives it: from a file, from KMS_PASSPHRASE, typed without echo, or on stdin. Never from the
// command line, where other users of the machine could see it.
import { KmsError } from '../errors.ts';
import type { KeySources } from '../server/custody/key-sources.ts';
import type { Cli } from './cli.ts';
import { readSmallText } from './files.ts';
import { readSecret } from './secret-input.ts';

/** The one in the file that --passphrase-file names, else in KMS_PASSPHRASE. */
export async function givenPassphrase(cli: Cli): Promise<string | undefined> {
  const file = cli.path('--passphrase-file');
  if (file !== undefined) return (await readSmallText(file, 'the passphrase')).replace(/\r?\n$/, '');
  return cli.io.env.KMS_PASSPHRASE || undefined;
}

/** A new one: given, or typed twice, or the first line of stdin. */
export async function newPassphrase(cli: Cli): Promise<string> {
  const given = await givenPassphrase(cli);
  if (given !== undefined) return given;
  const passphrase = await readSecret(cli, 'new passphrase for the master key');
  const { stdin, stderr } = cli.io;
  if (passphrase !== '' && stdin.isTTY && stderr.isTTY && passphrase !== (await readSecret(cli, 'once more'))) {
    throw new KmsError('refused', 'the two passphrases differ; nothing was done');
  }
  return passphrase;
}

/** Where a command that opens the data directory itself finds the master key. Only a person at a terminal is asked. */
export function keySources(cli: Cli): Omit<KeySources, 'keyFile'> {
  const { stdin, stderr, env } = cli.io;
  return {
    env: (name) => env[name],
    async passphrase() {
      const given = await givenPassphrase(cli);
      if (given !== undefined || !stdin.isTTY || !stderr.isTTY) return given;
      return readSecret(cli, 'passphrase of the master key');
    },
  };
}

/** Of a server, which asks nobody. */
export function serverKeySources(cli: Cli): Omit<KeySources, 'keyFile'> {
  return { env: (name) => cli.io.env[name], passphrase: () => givenPassphrase(cli) };
}
