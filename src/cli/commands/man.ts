// `kms man`: the manual page, made from the same grammar as the help.
import type { Cli } from '../cli.ts';
import { write } from '../io.ts';
import { manualPage } from '../manual.ts';

export async function run(cli: Cli): Promise<void> {
  await write(cli.io.stdout, manualPage(cli.grammar));
}
