// `kms tenant rekey`: new keys for a tenant. Everything that its clients hold stays good.
import type { RekeyResult } from '../../../server/rekey.ts';
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const path = `/local/tenants/${encodeURIComponent(cli.arg(0))}/rekey`;
    const result = await ask<RekeyResult & { readonly tenant: string }>('POST', path, {});
    await printThing(cli, result, [
      ['tenant', result.tenant],
      ['key epoch', result.epoch],
      ['files', result.complete ? 'all under the new key' : 'some still under an old key'],
    ]);
    if (!result.complete) await say(cli.io, 'run it again to go on; the next start of the server does so, too');
  });
}
