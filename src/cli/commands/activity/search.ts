// `kms activity search`: once, or with --watch for as long as somebody looks.
import { KmsError } from '../../../errors.ts';
import { accountIdOf } from '../../account-id.ts';
import { watchActivity } from '../../activity-watch.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';
import { activityColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const account = cli.text('--account');
  const filters = given({
    keyid: cli.text('--keyid'),
    action: cli.text('--action'),
    ring: cli.text('--ring'),
    valid: cli.boolean('--valid'),
    start: cli.time('--start'),
    end: cli.time('--end'),
    props: cli.object('--contains'),
  });
  if (cli.isOn('--watch')) return watchActivity(cli, filters, account);
  if (cli.isTyped('--every')) throw new KmsError('usage', '--every goes with --watch', { hint: cli.seeHelp });
  await withClient(cli, async (client) => {
    const accountId = account === undefined ? undefined : await accountIdOf(client, account);
    await printList(cli, client.searchActivity, given({ ...filters, accountId }), {
      columns: activityColumns,
      empty: 'no activity fits',
      usual: 100,
    });
  });
}
