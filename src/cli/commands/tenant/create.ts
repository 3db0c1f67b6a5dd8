// `kms tenant create`.
import type { FullApiKey } from '../../../api/apikey.ts';
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';

interface Made {
  readonly tenant: string;
  /** As they are compared: without ports, and in ASCII. */
  readonly hosts: readonly string[];
  readonly accountId: string;
  readonly apiKey: FullApiKey;
}

export async function run(cli: Cli): Promise<void> {
  const name = cli.arg(0);
  const typed = cli.list('--host');
  if (typed.length === 0) throw new KmsError('usage', '--host is missing', { hint: cli.seeHelp });
  await withLocal(cli, async ({ ask }) => {
    const { tenant, hosts, accountId, apiKey } = await ask<Made>('POST', '/local/tenants', { name, hosts: typed });
    await printThing(cli, { tenant, accountId, apiKey }, [
      ['tenant', tenant],
      ['hosts', hosts.join(' ')],
      ['account', accountId],
      ['API key id', apiKey.keyid],
      ['root API key', apiKey.key],
    ]);
    await say(cli.io, 'the root API key is shown this once and may do everything in this tenant: keep it safe');
  });
}
