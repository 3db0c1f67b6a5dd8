// User commands. Passwords and links are shown once, to be handed over.

import type { SafeApiKey } from '../../api/apikeys.ts';
import type { User } from '../../api/users.ts';
import type { Client } from '../../client/client.ts';
import { items } from '../../client/pages.ts';
import { KmsError } from '../../errors.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { localUrl, withClient, withLocal } from '../connect.ts';
import type { newUser, user } from '../grammar/user.ts';
import { say } from '../io.ts';
import { warnOfUnknownRings } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printThing, showOnce } from '../output.ts';
import { type Column, table } from '../table.ts';
import { visible } from '../text.ts';
import { apiKeyColumns, flagsOf, timeText } from './apikey.ts';

export async function create(cli: CliOf<typeof user.create>): Promise<void> {
  const fields = { ...newUserFields(cli), ...given({ displayName: cli.get('--display-name') }) };
  await withClient(cli, async (client) => {
    const { user, password } = await client.createUser(fields);
    const shown = printThing(cli, { user, password }, [['password', password], ...userPairs(user)]);
    const { username } = user;
    const link = `make a link to set another: kms user reset-link ${username}`;
    await showOnce(shown, `the user ${username} was made, but the password is lost`, link);
    await say(cli.io, 'the password is shown this once');
    await warnOfUnknownRings(cli, client, fields.flags ?? {});
    await warnOfNobody(cli, client, user);
  });
}

/**
 * Warns if the set-up link ended with this user, and no user may do everything. A program gets no warning, and leaves
 * no record of a listing.
 */
async function warnOfNobody(cli: Cli, client: Client, { username, flags }: Pick<User, 'username' | 'flags'>) {
  if (flags['*'] === true || !cli.io.stderr.isTTY) return;
  try {
    for await (const user of items(client.listUsers, { limit: 1000 })) if (user.flags['*'] === true) return;
  } catch (error) {
    // The user is made, whatever the caller may list.
    if (error instanceof KmsError) return;
    throw error;
  }
  await say(
    cli.io,
    visible(
      'warning: no user may do everything, and the set-up link works no longer; ' +
        `\`kms user update ${username} --flag '*'\` lets this one`,
    ),
  );
}

export async function invite(cli: CliOf<typeof user.invite>): Promise<void> {
  const fields = newUserFields(cli);
  await withClient(cli, async (client) => {
    const { loginUrl } = await client.inviteUser(fields);
    const { username } = fields;
    await showOnce(
      printThing(cli, { loginUrl }, [['invite', loginUrl]]),
      `the user ${username} was made, but the link is lost`,
      `delete the user and make it again: kms user delete ${username}`,
    );
    await sayOfLink(cli, loginUrl, 'the link works once: hand it to that person alone');
    await warnOfUnknownRings(cli, client, fields.flags ?? {});
    await warnOfNobody(cli, client, { username, flags: fields.flags ?? {} });
  });
}

export async function list(cli: CliOf<typeof user.list>): Promise<void> {
  const isActive = ({ state }: User): boolean => state === 'active';
  const style = { columns: userColumns, empty: 'no users', oldestFirst: true, isActive } as const;
  await withClient(cli, (client) => printList(cli, client.listUsers, {}, style));
}

export async function show(cli: CliOf<typeof user.show>): Promise<void> {
  const username = cli.get('<USERNAME>');
  await withClient(cli, async (client) => {
    const user = await client.getUser(cli.get('--by-email') ? { username, email: true } : { username });
    await printThing(cli, user, userPairs(user));
  });
}

export async function update(cli: CliOf<typeof user.update>): Promise<void> {
  const flags = flagsOf(cli);
  const none = cli.get('--clear-flags');
  if (flags && none) throw new KmsError('usage', '--flag and --clear-flags exclude each other');
  const changes = given({
    email: cli.get('--email'),
    firstName: cli.get('--first-name'),
    lastName: cli.get('--last-name'),
    flags: none ? {} : flags,
    props: cli.get('--props'),
  });
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', {
      hint: 'give --email, --first-name, --last-name, --flag, --clear-flags or --props',
    });
  }
  await withClient(cli, async (client) => {
    const user = await client.updateUser({ username: cli.get('<USERNAME>'), ...changes });
    await printThing(cli, user, userPairs(user));
    await warnOfUnknownRings(cli, client, flags ?? {});
  });
}

export async function remove(cli: CliOf<typeof user.remove>): Promise<void> {
  const username = cli.get('<USERNAME>');
  const heir = cli.get('--hand-keys-to');
  const deed =
    heir === undefined
      ? `deletes the user ${username} for good and ends the user's sessions`
      : `deletes the user ${username} for good, ends the user's sessions and hands the user's API keys to ${heir}`;
  await confirm(cli, deed, { details: async () => [...(await keyLines(cli, heir)), ...(await onlyUserLines(cli))] });
  await withClient(cli, async (client) => {
    if (heir !== undefined) await handKeys(cli, client, heir);
    const answer = await client.deleteUser(cli.get('--id') ? { username, id: true } : { username });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.message);
  });
}

/** Maximum of affected API keys listed before the question. */
const mostShown = 20;

/** Lines for the question whether to delete the user: the fate of their API keys. */
async function keyLines(cli: CliOf<typeof user.remove>, heir: string | undefined): Promise<readonly string[]> {
  let keys: readonly SafeApiKey[];
  try {
    keys = await withClient(cli, async (client) => {
      const { keys } = await named(cli, client);
      return firstOf(activeKeys(client, keys), mostShown + 1);
    });
  } catch (error) {
    if (!(error instanceof KmsError) || error.code === 'not-found') throw error;
    // Deleting the user does not need the permission to read keys. If the appliance does not answer, the deletion will
    // report it.
    if (error.code !== 'forbidden') return [];
    const what =
      heir === undefined ? "The user's API keys are disabled, too; they are" : 'Which API keys the user has is';
    return [`${what} not shown: ${error.message}.`];
  }
  if (keys.length === 0) return ['The user has no active API key.'];
  const style = { columns: undefined, colour: false, short: { now: Date.now() } };
  const rows = table(keys.slice(0, mostShown), shownColumns, style);
  const title = heir === undefined ? 'These API keys are disabled with the user:' : `These API keys go to ${heir}:`;
  return [title, ...rows, ...(keys.length > mostShown ? ['and others'] : [])];
}

/** A warning before the last user goes, or the last who may do everything. */
async function onlyUserLines(cli: CliOf<typeof user.remove>): Promise<readonly string[]> {
  return detailsFrom(cli, async (client) => {
    const { id, username, flags } = await named(cli, client);
    let others = 0;
    for await (const user of items(client.listUsers, { limit: 1000 })) {
      if (user.id === id) continue;
      others++;
      if (flags['*'] !== true || (user.flags['*'] === true && user.state === 'active')) return [];
    }
    if (others === 0)
      return [`${username} is the only user: a new first one needs the link of \`kms user set-up-link\`.`];
    return [`${username} is the only user who may do everything.`];
  });
}

const shownColumns = apiKeyColumns.filter(({ title }) => !['account', 'created'].includes(title));

async function* activeKeys(client: Client, ids: readonly string[]): AsyncGenerator<SafeApiKey> {
  for (const apikeyid of ids) {
    const key = await client.getApiKey({ apikeyid });
    if (key.active) yield key;
  }
}

async function firstOf<T>(items: AsyncIterable<T>, most: number): Promise<T[]> {
  const first: T[] = [];
  for await (const item of items) if (first.push(item) === most) break;
  return first;
}

/** Hands the keys to another user. Throws before anything is done if there is no such user. */
async function handKeys(cli: CliOf<typeof user.remove>, client: Client, heir: string): Promise<void> {
  const { id, keys } = await named(cli, client);
  const { id: owner } = await client.getUser({ username: heir });
  if (owner === id) throw new KmsError('usage', '--hand-keys-to: this is the user who is to be deleted');
  for await (const { keyid } of activeKeys(client, keys)) {
    await client.updateApiKey({ apikeyid: keyid, op: 'merge', owner });
  }
}

/** The user given by name or id. */
async function named(cli: CliOf<typeof user.remove>, client: Client): Promise<User> {
  const username = cli.get('<USERNAME>');
  if (!cli.get('--id')) return client.getUser({ username });
  for await (const user of items(client.listUsers, { limit: 1000 })) if (user.id === username) return user;
  throw new KmsError('not-found', 'there is no such user');
}

/** For an appliance that sends no mail: the operator hands the link over. */
export async function resetLink(cli: CliOf<typeof user.resetLink>): Promise<void> {
  const body = { username: cli.get('<USERNAME>'), ...(cli.get('--by-email') ? { email: true } : {}) };
  await withLocal(cli, async ({ ask }) => {
    const link = await ask('makeResetLink', { body });
    await printThing(cli, link, [
      ['username', link.username],
      ['reset link', link.resetUrl],
      ['works until', link.expiresAt],
    ]);
    const advice = 'the link works once and lets in anybody who has it: hand it to that person alone';
    await sayOfLink(cli, link.resetUrl, advice);
  });
}

export async function resetSecondFactor(cli: CliOf<typeof user.resetSecondFactor>): Promise<void> {
  const username = cli.get('<USERNAME>');
  const deed = `removes all second factors of the user ${username} and ends their sessions: the password alone is enough`;
  const body = { username, ...(cli.get('--by-email') ? { email: true } : {}) };
  const details = () =>
    detailsFrom(cli, async (client) => {
      await client.getUser(body);
      return [];
    });
  await confirm(cli, deed, { of: 'this machine', details });
  await withLocal(cli, async ({ ask }) => {
    const reset = await ask('resetSecondFactor', { body });
    if (cli.json) await printJson(cli, reset);
    else {
      const count = reset.removed === 1 ? '1 second factor' : `${reset.removed} second factors`;
      await printLine(cli, `${count} of ${reset.username} removed; sessions have ended`);
    }
  });
}

/** The way into the console while no user exists who could invite others. */
export async function setUpLink(cli: CliOf<typeof user.setUpLink>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const link = await ask('makeSetUpLink');
    await printThing(cli, link, [
      ['set-up link', link.url],
      ['works until', link.expiresAt],
    ]);
    const advice = 'the link works once, and the first person to open it may do everything: open it in a browser soon';
    await sayOfLink(cli, link.url, advice);
  });
}

/** Advice on using the link, and a warning if the appliance has no address yet. */
async function sayOfLink(cli: Cli, url: string, advice: string): Promise<void> {
  await say(cli.io, advice);
  if (url.startsWith(localUrl))
    await say(
      cli.io,
      `the appliance has not been served yet: put the address that it will have in place of ${localUrl}`,
    );
}

function userPairs(user: User): readonly Pair[] {
  return [
    ['username', user.username],
    ['id', user.id],
    ['name', user.displayName],
    ['first name', user.firstName],
    ['last name', user.lastName],
    ['email', user.email],
    ['state', user.state],
    ['last login', timeText(user.lastLoginAt)],
    ['flags', grantedTo(user)],
    ['API keys', user.keys.join(' ')],
    ['props', JSON.stringify(user.props)],
  ];
}

const userColumns: readonly Column<User>[] = [
  { title: 'username', value: (user) => user.username, name: true },
  { title: 'name', value: (user) => user.displayName, name: true, spare: true },
  { title: 'state', value: (user) => user.state, whole: true },
  { title: 'last login', value: (user) => timeText(user.lastLoginAt), short: true, spare: true },
  { title: 'email', value: (user) => user.email, name: true, spare: true },
  { title: 'flags', value: grantedTo, spare: true },
  { title: 'id', value: (user) => user.id, short: true, spare: true },
];

function grantedTo({ flags }: Pick<User, 'flags'>): string {
  return Object.keys(flags)
    .filter((name) => flags[name] === true)
    .join(' ');
}

/** Fields of a created or invited user. */
function newUserFields(cli: CliOf<typeof newUser>) {
  return given({
    username: cli.get('<USERNAME>'),
    email: cli.get('--email'),
    firstName: cli.get('--first-name'),
    lastName: cli.get('--last-name'),
    flags: flagsOf(cli),
    props: cli.get('--props'),
  });
}
