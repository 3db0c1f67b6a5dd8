// What is shown once when an appliance is made: where things are, and the root API key.
import type { FullApiKey } from '../api/apikey.ts';
import type { Cli } from './cli.ts';
import { say } from './io.ts';
import { printThing } from './output.ts';

export interface MadeAppliance {
  readonly tenant: { readonly name: string };
  readonly accountId: string;
  readonly apiKey: FullApiKey;
  readonly data: string;
  readonly keyFile: string;
}

export async function printFirstKey(cli: Cli, made: MadeAppliance): Promise<void> {
  const { tenant, accountId, apiKey, data, keyFile } = made;
  await printThing(cli, { tenant: tenant.name, accountId, apiKey }, [
    ['data directory', data],
    ['master key', keyFile],
    ['tenant', tenant.name],
    ['account', accountId],
    ['API key id', apiKey.keyid],
    ['root API key', apiKey.key],
  ]);
  await say(cli.io, 'the root API key is shown this once and may do everything: keep it safe');
  await say(cli.io, `without ${keyFile} nobody can open the data again: keep a copy of it, apart from the data`);
}
