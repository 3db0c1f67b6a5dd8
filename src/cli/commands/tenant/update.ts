// `kms tenant update`.
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { typedChanges } from './changes.ts';
import { type TenantAnswer, tenantPairs, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const changes = typedChanges(cli);
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --name or --host' });
  }
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask<TenantAnswer>('PATCH', tenantPath(cli.arg(0)), changes);
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}
