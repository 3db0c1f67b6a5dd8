// `kms apikey create`: shows the secret this once, or keeps it in a file that only its user can read.
import type { FullApiKey } from '../../../api/apikey.ts';
import { uidQuery } from '../../account-id.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { fileError, type NewFile, newFile } from '../../files.ts';
import { say } from '../../io.ts';
import { printThing } from '../../output.ts';
import { visible } from '../../visible.ts';
import { apiKeyPairs, flagsOf } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const accountId = cli.needed('--account');
  const input = given({ accountId, ...uidQuery(accountId), flags: await flagsOf(cli), props: cli.object('--props') });
  const path = cli.path('--secret-out');
  await withClient(cli, async (client) => {
    // Before the key is made: one whose secret cannot be kept is of no use.
    const file = path === undefined ? undefined : await newFile(path, 0o600);
    const key = await client.createApiKey(input).catch(async (error) => {
      await file?.discard();
      throw error;
    });
    const trouble = file && (await keep(file, key));
    const { key: secret, ...safe } = key;
    if (file && trouble === undefined) await printThing(cli, safe, apiKeyPairs(key));
    else await printThing(cli, key, [['key', secret], ...apiKeyPairs(key)]);
    if (path === undefined) {
      await say(cli.io, 'the key is shown this once: put it into a file that only its user can read');
    } else if (trouble !== undefined) {
      throw fileError('write', path, trouble, 'the key is shown above, this once');
    } else await say(cli.io, visible(`the key is in ${path}, and nowhere else`));
  });
}

/** Answers what went wrong. */
async function keep(file: NewFile, { key }: FullApiKey): Promise<unknown> {
  try {
    await file.handle.writeFile(`${key}\n`);
    await file.commit();
    return undefined;
  } catch (error) {
    await file.discard();
    return error ?? 'unknown';
  }
}
