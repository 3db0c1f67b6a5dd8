// `kms apikey update`.
import { KmsError } from '../../../errors.ts';
import { accountIdOf } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { apiKeyPairs, flagsOf } from './shown.ts';

const ops = ['merge', 'replace', 'delete'] as const;

export async function run(cli: Cli): Promise<void> {
  const op = opOf(cli);
  const account = cli.text('--account');
  const changes = given({ active: cli.boolean('--active'), flags: await flagsOf(cli), props: cli.object('--props') });
  if (Object.keys(changes).length === 0 && account === undefined) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --flag, --props, --active or --account' });
  }
  await withClient(cli, async (client) => {
    const references = account === undefined ? undefined : { accountId: await accountIdOf(client, account) };
    const key = await client.updateApiKey(given({ apikeyid: cli.arg(0), op, ...changes, references }));
    await printThing(cli, key, apiKeyPairs(key));
  });
}

function opOf(cli: Cli): (typeof ops)[number] {
  const text = cli.text('--op') ?? 'merge';
  const op = ops.find((each) => each === text);
  if (op) return op;
  throw new KmsError('usage', `--op: expected merge, replace or delete, got "${text}"`, { hint: cli.seeHelp });
}
