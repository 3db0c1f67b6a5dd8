// `kms completion`: the script that makes a shell complete what is typed.
import { KmsError } from '../../errors.ts';
import type { Cli } from '../cli.ts';
import { scriptFor, shells } from '../completion/scripts.ts';
import { write } from '../io.ts';
import { nearest } from '../nearest.ts';

export async function run(cli: Cli): Promise<void> {
  const typed = cli.arg(0);
  const shell = shells.find((each) => each === typed);
  if (shell !== undefined) return write(cli.io.stdout, scriptFor(shell));
  const near = nearest(typed, shells);
  throw new KmsError('usage', `SHELL: expected ${shells.join(', ')}, got "${typed}"`, {
    hint: near === undefined ? cli.seeHelp : `did you mean ${near}?`,
  });
}
