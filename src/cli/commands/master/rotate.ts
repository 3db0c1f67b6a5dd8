// `kms master rotate`: a new master key for the same custodians; nothing else is written, and nobody waits.
import type { MasterAnswer } from '../../../server/custody/master-admin.ts';
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printMaster } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    await printMaster(cli, await ask<MasterAnswer>('POST', '/local/master/rotate', {}));
    await say(cli.io, 'copies of the old seal file, such as in backups, still open with the custodians that they had');
  });
}
