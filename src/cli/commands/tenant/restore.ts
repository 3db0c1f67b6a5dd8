// `kms tenant restore`.
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { typedChanges } from './changes.ts';
import { type TenantAnswer, tenantPairs, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask<TenantAnswer>('POST', `${tenantPath(cli.arg(0))}/restore`, typedChanges(cli));
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}
