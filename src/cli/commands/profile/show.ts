// `kms profile show`.
import type { Cli } from '../../cli.ts';
import { readProfile } from '../../profiles.ts';
import { printProfile } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const name = cli.arg(0);
  await printProfile(cli, name, await readProfile(cli.io, name));
}
