// Account commands. Accounts own API keys; people name them by uid or by id, which is recognizable by its form.

import type { Account } from '../../api/accounts.ts';
import type { Client } from '../../client/client.ts';
import { items } from '../../client/pages.ts';
import { KmsError } from '../../errors.ts';
import { type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { account } from '../grammar/account.ts';
import { nameTaken } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printThing } from '../output.ts';
import type { Column } from '../table.ts';
import { agoText } from '../text.ts';

function accountPairs(account: Account): readonly Pair[] {
  return [
    ['uid', account.uid],
    ['id', account.id],
    ['notes', account.notes],
    ['props', JSON.stringify(account.props)],
    ['created', account.createdAt],
    ['updated', account.updatedAt],
  ];
}

const accountColumns: readonly Column<Account>[] = [
  { title: 'uid', value: (account) => account.uid, name: true },
  { title: 'notes', value: (account) => account.notes, spare: true },
  { title: 'created', value: (account) => account.createdAt, short: true, spare: true },
  { title: 'id', value: (account) => account.id, short: true, spare: true },
];

export async function create(cli: CliOf<typeof account.create>): Promise<void> {
  const input = given({ uid: cli.get('<UID>'), notes: cli.get('--notes'), props: cli.get('--props') });
  await withClient(cli, async (client) => {
    const account = await client.createAccount(input).catch((error) => {
      throw nameTaken(error, input.uid);
    });
    await printThing(cli, account, accountPairs(account));
  });
}

export async function list(cli: CliOf<typeof account.list>): Promise<void> {
  await withClient(cli, (client) =>
    printList(cli, client.listAccounts, {}, { columns: accountColumns, empty: 'no accounts', oldestFirst: true }),
  );
}

export async function show(cli: CliOf<typeof account.show>): Promise<void> {
  const id = cli.get('<UID>');
  await withClient(cli, async (client) => {
    const account = await client.getAccount({ id, ...uidQuery(id) });
    await printThing(cli, account, accountPairs(account));
  });
}

export async function update(cli: CliOf<typeof account.update>): Promise<void> {
  const changes = given({ uid: cli.get('--uid'), notes: cli.get('--notes'), props: cli.get('--props') });
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --uid, --notes or --props' });
  }
  await withClient(cli, async (client) => {
    const id = await accountIdOf(client, cli.get('<UID>'));
    const account = await client.updateAccount({ id, ...changes });
    await printThing(cli, account, accountPairs(account));
  });
}

export async function remove(cli: CliOf<typeof account.remove>): Promise<void> {
  const id = cli.get('<UID>');
  const details = (): Promise<readonly string[]> =>
    detailsFrom(cli, async (client) => {
      const { uid } = await client.getAccount({ id, ...uidQuery(id) });
      return [`${uid} has ${await keysOf(client, id)}.`];
    });
  await confirm(cli, `deletes the account ${id} and its API keys for good`, { details });
  await withClient(cli, async (client) => {
    const account = await client.deleteAccount({ id, ...uidQuery(id) });
    if (cli.json) await printJson(cli, account);
    else await printLine(cli, `${account.uid} and its API keys are deleted`);
  });
}

/** The API keys that go with the account, in words. */
async function keysOf(client: Client, id: string): Promise<string> {
  let [count, active, lastUsedAt] = [0, 0, 0];
  const mighty: string[] = [];
  for await (const key of items(client.listAccountApiKeys, { accountId: id, ...uidQuery(id), limit: 1000 })) {
    count++;
    if (key.active && !(key.expiresAt !== null && key.expiresAt <= Date.now())) active++;
    if (key.active && key.flags['*'] === true) mighty.push(key.name || key.keyid);
    lastUsedAt = Math.max(lastUsedAt, key.lastUsedAt ?? 0);
  }
  if (count === 0) return 'no API keys';
  const used = lastUsedAt === 0 ? 'never used' : `last used ${agoText(lastUsedAt)}`;
  const [first] = mighty;
  if (count === 1) {
    const everything = first === undefined ? '' : '; it may do everything';
    return `1 API key, which is ${active === 1 ? 'active' : 'not active'}, ${used}${everything}`;
  }
  const everything =
    mighty.length > 1
      ? `; among them are ${mighty.length} that may do everything, such as ${first}`
      : `; among them is ${first}, which may do everything`;
  const how = active === count ? 'all' : active === 0 ? 'none' : active;
  return `${count} API keys, ${how} of them active, ${used}${first === undefined ? '' : everything}`;
}

/** Whether the text has the form of an account's id. */
function isAccountId(text: string): boolean {
  return /^acct_[0-9a-hjkmnp-tv-z]{26}$/.test(text);
}

/** The id of an account named by uid or id. */
export async function accountIdOf(client: Client, account: string): Promise<string> {
  return isAccountId(account) ? account : (await client.getAccount({ id: account, uid: true })).id;
}

/** The query parameter that marks a path value as a uid. */
export function uidQuery(account: string): { uid?: true } {
  return isAccountId(account) ? {} : { uid: true };
}
