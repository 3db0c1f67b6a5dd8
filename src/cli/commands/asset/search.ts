// `kms asset search`.
import { accountIdOf } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';
import { assetColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const account = cli.text('--account');
  const parents = cli.list('--parent');
  const filters = given({
    apikeyId: cli.text('--apikey'),
    keyringId: cli.text('--ring-id'),
    parents: parents.length > 0 ? [...parents] : undefined,
    start: cli.time('--start'),
    end: cli.time('--end'),
    data: cli.object('--contains'),
  });
  await withClient(cli, async (client) => {
    const accountId = account === undefined ? undefined : await accountIdOf(client, account);
    await printList(cli, client.searchAssets, given({ ...filters, accountId }), {
      columns: assetColumns,
      empty: 'no asset fits',
      usual: 100,
    });
  });
}
