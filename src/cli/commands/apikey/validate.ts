// `kms apikey validate`: asks whether the key on stdin exists and is active.
import { KmsError } from '../../../errors.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { exitCodes } from '../../exit-codes.ts';
import { printJson, printLine } from '../../output.ts';
import { readSecret } from '../../secret-input.ts';

export async function run(cli: Cli): Promise<number> {
  const activity = cli.object('--activity');
  const key = await readSecret(cli, 'API key');
  if (key === '') throw new KmsError('usage', 'expected an API key on stdin, got nothing', { hint: cli.seeHelp });
  return withClient(cli, async (client) => {
    const answer = await client.validateApiKey(given({ key, activity }));
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.valid ? 'valid' : 'not valid: it does not exist here or is inactive');
    return answer.valid ? exitCodes.done : exitCodes.failed;
  });
}
