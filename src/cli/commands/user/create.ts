// `kms user create`.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { say } from '../../io.ts';
import { printThing } from '../../output.ts';
import { newUserFields, userPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const fields = { ...(await newUserFields(cli)), ...given({ displayName: cli.text('--display-name') }) };
  await withClient(cli, async (client) => {
    const { user, password } = await client.createUser(fields);
    await printThing(cli, { user, password }, [['password', password], ...userPairs(user)]);
    await say(cli.io, 'the password is shown this once');
  });
}
