// `kms profile list`. One that cannot be read is named on stderr and does not hide the others.
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import { printJson, printTable } from '../../output.ts';
import { profileNames, readProfile } from '../../profiles.ts';
import { visible } from '../../visible.ts';
import { type ShownProfile, shownProfile } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const profiles: ShownProfile[] = [];
  for (const name of await profileNames(cli.io)) {
    try {
      profiles.push(await shownProfile(cli, name, await readProfile(cli.io, name)));
    } catch (error) {
      if (!(error instanceof KmsError)) throw error;
      await say(cli.io, visible(`warning: ${error.message}${error.hint === undefined ? '' : `; ${error.hint}`}`));
    }
  }
  if (cli.json) return printJson(cli, { profiles });
  if (profiles.length === 0) return say(cli.io, 'no profiles yet: make one with `kms profile add NAME --server URL`');
  await printTable(cli, profiles, [
    { title: 'name', value: ({ name }) => name },
    { title: 'server', value: ({ server }) => server },
    { title: 'API key', value: ({ apiKey }) => (apiKey ? 'kept' : 'none') },
    { title: 'default', value: (profile) => (profile.default ? 'yes' : '') },
  ]);
}
