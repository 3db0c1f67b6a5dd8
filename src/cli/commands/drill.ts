// `kms drill`: whether a backup of the appliance restores, tried out.
import type { VerifiedBackup } from '../../server/backup/keeper.ts';
import type { Cli } from '../cli.ts';
import { withLocal } from '../local.ts';
import { printThing } from '../output.ts';
import { byteCount } from '../transfer.ts';

export async function run(cli: Cli): Promise<void> {
  const began = performance.now();
  const tried = await withLocal(cli, ({ ask }) => ask<VerifiedBackup>('POST', '/local/drill', {}));
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  await printThing(cli, { restores: true, ...tried, seconds }, [
    ['backup', 'restores'],
    ['size', byteCount(tried.bytes)],
    ['stores', tried.stores],
    ['transactions', tried.transactions],
    ['activities', tried.activities],
    ['rows', tried.rows],
    ['took', `${seconds} s`],
  ]);
}
