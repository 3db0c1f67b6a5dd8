// `kms asym show-key`.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  const input = given({ ringname: cli.arg(0), keyId: cli.arg(1), id: cli.isOn('--id') || undefined });
  await withClient(cli, async (client) => {
    const key = await client.getAsymKey(input);
    await printThing(cli, key, [
      ['id', key.id],
      ['type', key.type],
      ['props', JSON.stringify(key.props)],
      ['wrapped key', key.keyData.key],
    ]);
  });
}
