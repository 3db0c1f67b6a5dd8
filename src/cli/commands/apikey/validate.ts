// `kms apikey validate`: asks whether the key on stdin exists and is active.
import { KmsError } from '../../../errors.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printJson, printLine } from '../../output.ts';
import { readSecret } from '../../secret-input.ts';

export async function run(cli: Cli): Promise<void> {
  const activity = cli.object('--activity');
  const key = await readSecret(cli, 'API key');
  if (key === '') throw new KmsError('usage', 'expected an API key on stdin, got nothing', { hint: cli.seeHelp });
  const answer = await withClient(cli, (client) => client.validateApiKey(given({ key, activity })));
  if (cli.json) await printJson(cli, answer);
  else if (answer.valid) await printLine(cli, 'valid');
  if (answer.valid) return;
  throw new KmsError('refused', 'the API key is not valid', { hint: 'it does not exist here or is inactive' });
}
