// `kms master remove-custodian`: from now on that one opens nothing; never the last one.
import type { MasterAnswer } from '../../../server/custody/master-admin.ts';
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printMaster } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const id = cli.arg(0);
  await confirm(cli, `ends the custodian ${id}: it opens the appliance no more`, { here: true });
  await withLocal(cli, async ({ ask }) => {
    await printMaster(cli, await ask<MasterAnswer>('DELETE', `/local/master/custodians/${encodeURIComponent(id)}`));
    await say(cli.io, 'it can still open old copies of the seal file; if it is in wrong hands, run: kms master rotate');
  });
}
