// `kms apikey list`: all, those of an account, or those that name a ring.
import { KmsError } from '../../../errors.ts';
import { uidQuery } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';
import { apiKeyColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const account = cli.text('--account');
  const ring = cli.text('--ring');
  if (account !== undefined && ring !== undefined)
    throw new KmsError('usage', '--account and --ring exclude each other');
  const style = { columns: apiKeyColumns, empty: 'no API keys' };
  await withClient(cli, (client) => {
    if (account !== undefined) {
      return printList(cli, client.listAccountApiKeys, { accountId: account, ...uidQuery(account) }, style);
    }
    if (ring === undefined) return printList(cli, client.listApiKeys, {}, style);
    const input = given({ keyringname: ring, wildcard: cli.isOn('--wildcard') || undefined });
    return printList(cli, client.searchKeyringApiKeys, input, style);
  });
}
