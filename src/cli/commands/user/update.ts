// `kms user update`.
import { KmsError } from '../../../errors.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { flagsOf } from '../apikey/shown.ts';
import { userPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const flags = await flagsOf(cli);
  const none = cli.isOn('--clear-flags');
  if (flags && none) throw new KmsError('usage', '--flag and --clear-flags exclude each other');
  const changes = given({
    email: cli.text('--email'),
    firstName: cli.text('--first-name'),
    lastName: cli.text('--last-name'),
    flags: none ? {} : flags,
    props: cli.object('--props'),
  });
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', {
      hint: 'give --email, --first-name, --last-name, --flag, --clear-flags or --props',
    });
  }
  await withClient(cli, async (client) => {
    const user = await client.updateUser({ username: cli.arg(0), ...changes });
    await printThing(cli, user, userPairs(user));
  });
}
