// `kms master add-custodian`: one more that can open the appliance. Its secret is made here and never goes to the server.
import { join } from 'node:path';
import type { MasterAnswer } from '../../../server/custody/master-admin.ts';
import type { Cli } from '../../cli.ts';
import { custodianRequest } from '../../custodian-options.ts';
import { say } from '../../io.ts';
import { sayHowToKeep, secretFields, secretPairs } from '../../kept-secrets.ts';
import { withLocal } from '../../local.ts';
import { printThing } from '../../output.ts';
import { dataDirectory } from '../../target.ts';

export async function run(cli: Cli): Promise<void> {
  const data = dataDirectory(cli);
  const file = cli.path('--file') ?? join(data, '..', 'kms-additional.master.key');
  const request = await custodianRequest(cli, cli.arg(0), 'KIND', { file, make: true });
  const { newCustodian } = await import('../../../server/custody/new-custodian.ts');
  const { sentSlot } = await import('../../../server/custody/master-admin.ts');
  await withLocal(cli, async ({ ask }) => {
    const made = await newCustodian(request);
    const { slot, keyFile } = made;
    await made.keep();
    const { fingerprint } = await ask<MasterAnswer>('POST', '/local/master/custodians', sentSlot(slot));
    const { id, kind, params } = slot;
    await printThing(cli, { fingerprint, custodian: { id, kind, params }, ...secretFields(made) }, [
      ['master key', fingerprint],
      ['custodian', id],
      ['kind', kind],
      ['key file', keyFile?.place],
      ...secretPairs(made),
    ]);
    await sayHowToKeep(cli, made);
    if (kind === 'exec') await say(cli.io, 'the command is run at each start: keep it where nobody else can change it');
  });
}
