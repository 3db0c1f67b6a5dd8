// What is shown once when an appliance is made: where things are, the root API key, and what custodians are to keep.
import type { FullApiKey } from '../api/apikey.ts';
import type { Cli } from './cli.ts';
import { say } from './io.ts';
import { type KeptSecrets, sayHowToKeep, secretFields, secretPairs } from './kept-secrets.ts';
import { printThing } from './output.ts';

export interface MadeAppliance extends KeptSecrets {
  readonly tenant: { readonly name: string };
  readonly accountId: string;
  readonly apiKey: FullApiKey;
  readonly data: string;
  readonly keyFile: string;
  /** The kind. */
  readonly custodian: string;
}

export async function printFirstKey(cli: Cli, made: MadeAppliance): Promise<void> {
  const { tenant, accountId, apiKey, data, keyFile, custodian } = made;
  const inFile = custodian === 'keyfile';
  await printThing(cli, { tenant: tenant.name, accountId, apiKey, ...secretFields(made) }, [
    ['data directory', data],
    ['master key', inFile ? keyFile : `kept by: ${custodian}`],
    ['tenant', tenant.name],
    ['account', accountId],
    ['API key id', apiKey.keyid],
    ['root API key', apiKey.key],
    ...secretPairs(made),
  ]);
  await say(cli.io, 'the root API key is shown this once and may do everything: keep it safe');
  await sayHowToKeep(cli, made);
  if (inFile) {
    await say(cli.io, `without ${keyFile} nobody can open the data again: keep a copy of it, apart from the data`);
  } else await say(cli.io, 'without what keeps the master key nobody can open the data again');
}
