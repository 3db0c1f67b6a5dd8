// `kms tenant restore`.
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { typedChanges } from './changes.ts';
import { type TenantAnswer, tenantPairs, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const restored = ask<TenantAnswer>('POST', `${tenantPath(cli.arg(0))}/restore`, typedChanges(cli));
    const tenant = await restored.catch((error) => {
      throw withAdvice(error);
    });
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}

/** Its name or hosts may be another's by now. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  const { name, hosts } = error.fields ?? {};
  if (name === undefined && hosts === undefined) return error;
  const hint =
    name === undefined ? 'bring it back with other hosts: --host NAME' : 'bring it back under another: --name NAME';
  return new KmsError(error.code, error.message, { hint, cause: error });
}
