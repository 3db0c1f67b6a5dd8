// `kms init`: makes an appliance and shows its first API key, which is shown nowhere else.
import { KmsError } from '../../errors.ts';
import { type Cli, given } from '../cli.ts';
import { dataDirectory } from '../connect.ts';
import { printFirstKey } from '../first-key.ts';
import { say } from '../io.ts';

export async function run(cli: Cli): Promise<void> {
  if (cli.text('--server') !== undefined && cli.isTyped('--server')) {
    throw new KmsError('usage', '--server: an appliance is made where it is to run', { hint: cli.seeHelp });
  }
  const custodian = cli.text('--custodian') ?? 'keyfile';
  if (custodian !== 'keyfile') {
    throw new KmsError('usage', `--custodian: expected keyfile, got "${custodian}"`, {
      hint: 'this version keeps the master key in a key file',
    });
  }
  const { initAppliance } = await import('../../server/init.ts');
  const hosts = cli.list('--host');
  const made = await initAppliance(given({ data: dataDirectory(cli), keyFile: cli.path('--key-file'), hosts }));
  await printFirstKey(cli, made);
  if (!cli.json) await say(cli.io, 'next: `kms serve`, then `kms keyring create NAME`');
}
