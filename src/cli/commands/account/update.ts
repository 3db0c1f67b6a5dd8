// `kms account update`.
import { KmsError } from '../../../errors.ts';
import { accountIdOf } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { accountPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const changes = given({ uid: cli.text('--uid'), notes: cli.text('--notes'), props: cli.object('--props') });
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --uid, --notes or --props' });
  }
  await withClient(cli, async (client) => {
    const id = await accountIdOf(client, cli.arg(0));
    const account = await client.updateAccount({ id, ...changes });
    await printThing(cli, account, accountPairs(account));
  });
}
