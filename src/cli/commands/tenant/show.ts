// `kms tenant show`.
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { type TenantAnswer, tenantPairs, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask<TenantAnswer>('GET', tenantPath(cli.arg(0)));
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}
