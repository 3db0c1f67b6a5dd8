// `kms keyring config`: shows the configuration, or changes what is named.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { configPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const ringname = cli.arg(0);
  const config = changes(cli);
  await withClient(cli, async (client) => {
    const answer = config ? await client.putConfig({ ringname, config }) : await client.getConfig({ ringname });
    await printThing(cli, answer, configPairs(answer.config));
  });
}

function changes(cli: Cli) {
  const maxEncryptCount = cli.integer('--max-encrypt-count');
  const keyProps = cli.object('--key-props');
  const config = given({
    props: cli.object('--props'),
    key: keyProps && { props: keyProps },
    algos: maxEncryptCount === undefined ? undefined : { aes256: { maxEncryptCount } },
  });
  return Object.keys(config).length > 0 ? config : undefined;
}
