// Where the command line keeps what is a user's own: the private keys of rings, and profiles.
import { join } from 'node:path';
import { type Io, pathFrom } from './io.ts';

/** `$XDG_CONFIG_HOME/kms`, else `~/.config/kms`. Throws `refused` where the user has no home. */
export function configDirectory(io: Io): string {
  const { XDG_CONFIG_HOME } = io.env;
  return join(XDG_CONFIG_HOME ? pathFrom(io, XDG_CONFIG_HOME) : join(io.home, '.config'), 'kms');
}
