// `kms tenant delete`.
import type { Cli } from '../../cli.ts';
import { confirm } from '../../confirm.ts';
import { withLocal } from '../../local.ts';
import { printJson, printLine } from '../../output.ts';
import { type TenantAnswer, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const name = cli.arg(0);
  await confirm(
    cli,
    `deletes the tenant ${name}: nobody can use it or its keys until it is restored, and after 30 days it is erased`,
    { name, here: true },
  );
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask<TenantAnswer>('DELETE', tenantPath(name));
    if (cli.json) await printJson(cli, tenant);
    else
      await printLine(
        cli,
        `${tenant.name} is deleted; until ${tenant.restorableUntil} \`kms tenant restore ${tenant.id}\` brings it back`,
      );
  });
}
