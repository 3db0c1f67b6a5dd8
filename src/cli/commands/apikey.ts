// API keys. A secret is shown once, when its key is made, or kept in a file that only its user can read.

import type { FullApiKey, SafeApiKey } from '../../api/apikeys.ts';
import { KmsError } from '../../errors.ts';
import { isKnownFlag } from '../../model/flags.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import { fileError, type NewFile, newFile } from '../files.ts';
import type { apikey } from '../grammar/apikey.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printLine, printList, printThing } from '../output.ts';
import { readSecret } from '../secrets.ts';
import type { Column } from '../table.ts';
import { visible } from '../text.ts';
import { accountIdOf, uidQuery } from './account.ts';

export async function create(cli: CliOf<typeof apikey.create>): Promise<void> {
  const accountId = cli.get('--account');
  const input = given({ accountId, ...uidQuery(accountId), flags: await flagsOf(cli), props: cli.get('--props') });
  const path = cli.get('--secret-out');
  await withClient(cli, async (client) => {
    // Before the key is made: one whose secret cannot be kept is of no use.
    const file = path === undefined ? undefined : await newFile(path, 0o600);
    const key = await client.createApiKey(input).catch(async (error) => {
      await file?.discard();
      throw error;
    });
    const failure = file && (await keep(file, key));
    const { key: secret, ...safe } = key;
    if (file && failure === undefined) await printThing(cli, safe, apiKeyPairs(key));
    else await printThing(cli, key, [['key', secret], ...apiKeyPairs(key)]);
    if (path === undefined) {
      await say(cli.io, 'the key is shown this once: put it into a file that only its user can read');
    } else if (failure !== undefined) {
      throw fileError('write', path, failure, 'the key is shown above, this once');
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

/** All, those of an account, or those that name a ring. */
export async function list(cli: CliOf<typeof apikey.list>): Promise<void> {
  const account = cli.get('--account');
  const ring = cli.get('--ring');
  if (account !== undefined && ring !== undefined)
    throw new KmsError('usage', '--account and --ring exclude each other');
  const style = { columns: apiKeyColumns, empty: 'no API keys' };
  await withClient(cli, (client) => {
    if (account !== undefined) {
      return printList(cli, client.listAccountApiKeys, { accountId: account, ...uidQuery(account) }, style);
    }
    if (ring === undefined) return printList(cli, client.listApiKeys, {}, style);
    const input = given({ keyringname: ring, wildcard: cli.get('--wildcard') || undefined });
    return printList(cli, client.searchKeyringApiKeys, input, style);
  });
}

export async function show(cli: CliOf<typeof apikey.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.getApiKey({ apikeyid: cli.get('<KEYID>') });
    await printThing(cli, key, apiKeyPairs(key));
  });
}

export async function update(cli: CliOf<typeof apikey.update>): Promise<void> {
  const op = cli.get('--op') ?? 'merge';
  const account = cli.get('--account');
  const changes = given({ active: cli.get('--active'), flags: await flagsOf(cli), props: cli.get('--props') });
  if (Object.keys(changes).length === 0 && account === undefined) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --flag, --props, --active or --account' });
  }
  await withClient(cli, async (client) => {
    const references = account === undefined ? undefined : { accountId: await accountIdOf(client, account) };
    const key = await client.updateApiKey(given({ apikeyid: cli.get('<KEYID>'), op, ...changes, references }));
    await printThing(cli, key, apiKeyPairs(key));
  });
}

export async function revoke(cli: CliOf<typeof apikey.revoke>): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.updateApiKey({ apikeyid: cli.get('<KEYID>'), op: 'merge', active: false });
    if (cli.json) await printJson(cli, key);
    else
      await printLine(
        cli,
        `${key.keyid} is inactive; \`kms apikey update ${key.keyid} --active true\` takes that back`,
      );
  });
}

export async function validate(cli: CliOf<typeof apikey.validate>): Promise<void> {
  const activity = cli.get('--activity');
  const key = await readSecret(cli, 'API key');
  if (key === '') throw cli.wrong('expected an API key on stdin, got nothing');
  const answer = await withClient(cli, (client) => client.validateApiKey(given({ key, activity })));
  if (cli.json) await printJson(cli, answer);
  else if (answer.valid) await printLine(cli, 'valid');
  if (answer.valid) return;
  throw new KmsError('refused', 'the API key is not valid', { hint: 'it does not exist here or is inactive' });
}

type Shown = Pick<SafeApiKey, 'keyid' | 'active' | 'references' | 'flags' | 'props'> & Partial<SafeApiKey>;

function apiKeyPairs(key: Shown): readonly Pair[] {
  return [
    ['id', key.keyid],
    ['active', key.active ? 'yes' : 'no'],
    ['account', key.references.accountId],
    ['flags', granted(key)],
    ['props', JSON.stringify(key.props)],
    ['created', key.createdAt],
    ['updated', key.updatedAt],
  ];
}

const apiKeyColumns: readonly Column<SafeApiKey>[] = [
  { title: 'id', value: (key) => key.keyid, whole: true },
  { title: 'active', value: (key) => (key.active ? 'yes' : 'no') },
  { title: 'account', value: (key) => key.references.accountId, whole: true },
  { title: 'flags', value: granted },
  { title: 'created', value: (key) => key.createdAt, whole: true, spare: true },
];

function granted({ flags }: Pick<SafeApiKey, 'flags'>): string {
  return Object.keys(flags)
    .filter((name) => flags[name] === true)
    .join(' ');
}

/** The flags object of the repeated --flag, with a warning of names that the appliance knows nothing of. */
export async function flagsOf(cli: Cli<{ '--flag': readonly string[] }>): Promise<Record<string, boolean> | undefined> {
  const names = cli.get('--flag');
  for (const name of names) {
    if (!isKnownFlag(name))
      await say(cli.io, `warning: the flag "${name}" grants nothing in this appliance; is it a mistake?`);
  }
  return names.length > 0 ? Object.fromEntries(names.map((name) => [name, true])) : undefined;
}
