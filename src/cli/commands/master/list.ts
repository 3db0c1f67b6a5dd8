// `kms master list`: who holds the master key.
import type { MasterAnswer } from '../../../server/custody/master-admin.ts';
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printMaster } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => printMaster(cli, await ask<MasterAnswer>('GET', '/local/master')));
}
