// `kms user invite`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { say } from '../../io.ts';
import { printThing } from '../../output.ts';
import { newUserFields } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const fields = await newUserFields(cli);
  await withClient(cli, async (client) => {
    const { loginUrl } = await client.inviteUser(fields);
    await printThing(cli, { loginUrl }, [['invite', loginUrl]]);
    await say(cli.io, 'the link works once: hand it to that person alone');
  });
}
