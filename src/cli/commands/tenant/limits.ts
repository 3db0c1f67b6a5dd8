// `kms tenant limits`: shows them, or sets and lifts those that are given.
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { limitOptions, type TenantAnswer, tenantPath } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const changes: Record<string, number | null> = {};
  for (const [option, name] of Object.entries(limitOptions)) {
    if (cli.isTyped(option)) changes[name] = limitOf(cli, option);
  }
  const path = tenantPath(cli.arg(0));
  await withLocal(cli, async ({ ask }) => {
    const tenant = await (Object.keys(changes).length === 0
      ? ask<TenantAnswer>('GET', path)
      : ask<TenantAnswer>('PUT', `${path}/limits`, changes));
    const pairs = Object.entries(limitOptions).map(
      ([option, name]) => [option.slice(2), String(tenant.limits[name] ?? 'none')] as const,
    );
    await printThing(cli, tenant, pairs);
  });
}

function limitOf(cli: Cli, option: string): number | null {
  const text = cli.text(option) ?? '';
  if (text === 'none') return null;
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  throw new KmsError('usage', `${option}: expected a whole number or none, got "${text}"`, { hint: cli.seeHelp });
}
