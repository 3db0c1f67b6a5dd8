// `kms tenant list`.
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printJson, printTable } from '../../output.ts';
import { deletedColumn, type TenantAnswer, tenantColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const deleted = cli.isOn('--deleted');
  await withLocal(cli, async ({ ask }) => {
    const page = await ask<{ data: TenantAnswer[] }>('GET', `/local/tenants${deleted ? '?deleted=true' : ''}`);
    if (cli.json) await printJson(cli, page);
    else await printTable(cli, page.data, deleted ? [...tenantColumns, deletedColumn] : tenantColumns);
  });
}
