// `kms profile use`: chooses the profile of commands that name no appliance.
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { printJson, printLine } from '../../output.ts';
import { readProfile, setDefaultProfile } from '../../profiles.ts';

export async function run(cli: Cli): Promise<void> {
  const name = cli.optionalArg(0);
  const none = cli.isTyped('--none');
  if ((name === undefined) !== none) {
    throw new KmsError('usage', 'expected the name of a profile or --none', { hint: cli.seeHelp });
  }
  if (name === undefined) {
    await setDefaultProfile(cli.io, undefined);
    return cli.json ? printJson(cli, { default: null }) : printLine(cli, 'no profile is used by default');
  }
  const { server } = await readProfile(cli.io, name);
  await setDefaultProfile(cli.io, name);
  if (cli.json) return printJson(cli, { default: name });
  await printLine(cli, `${name} (${server}) is used where no appliance is named and none is in ./kms-data`);
}
