// Users: people who log in. Passwords and links are shown once, to be handed over.

import type { User } from '../../api/users.ts';
import { KmsError } from '../../errors.ts';
import { type CliOf, given } from '../command.ts';
import { confirm } from '../confirm.ts';
import { withClient, withLocal } from '../connect.ts';
import type { newUser, user } from '../grammar/user.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printLine, printList, printThing } from '../output.ts';
import type { Column } from '../table.ts';
import { flagsOf } from './apikey.ts';

export async function create(cli: CliOf<typeof user.create>): Promise<void> {
  const fields = { ...(await newUserFields(cli)), ...given({ displayName: cli.get('--display-name') }) };
  await withClient(cli, async (client) => {
    const { user, password } = await client.createUser(fields);
    await printThing(cli, { user, password }, [['password', password], ...userPairs(user)]);
    await say(cli.io, 'the password is shown this once');
  });
}

export async function invite(cli: CliOf<typeof user.invite>): Promise<void> {
  const fields = await newUserFields(cli);
  await withClient(cli, async (client) => {
    const { loginUrl } = await client.inviteUser(fields);
    await printThing(cli, { loginUrl }, [['invite', loginUrl]]);
    await say(cli.io, 'the link works once: hand it to that person alone');
  });
}

export async function list(cli: CliOf<typeof user.list>): Promise<void> {
  await withClient(cli, (client) => printList(cli, client.listUsers, {}, { columns: userColumns, empty: 'no users' }));
}

export async function show(cli: CliOf<typeof user.show>): Promise<void> {
  const username = cli.get('<USERNAME>');
  await withClient(cli, async (client) => {
    const user = await client.getUser(cli.get('--by-email') ? { username, email: true } : { username });
    await printThing(cli, user, userPairs(user));
  });
}

export async function update(cli: CliOf<typeof user.update>): Promise<void> {
  const flags = await flagsOf(cli);
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
  });
}

export async function remove(cli: CliOf<typeof user.remove>): Promise<void> {
  const username = cli.get('<USERNAME>');
  await confirm(
    cli,
    `deletes the user ${username} for good, ends the user's sessions and disables the user's API keys`,
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteUser(cli.get('--id') ? { username, id: true } : { username });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.message);
  });
}

/** Where no mail goes out, the operator hands the link over. */
export async function resetLink(cli: CliOf<typeof user.resetLink>): Promise<void> {
  const body = { username: cli.get('<USERNAME>'), ...(cli.get('--by-email') ? { email: true } : {}) };
  await withLocal(cli, async ({ ask }) => {
    const link = await ask('makeResetLink', { body });
    await printThing(cli, link, [
      ['username', link.username],
      ['reset link', link.resetUrl],
      ['works until', link.expiresAt],
    ]);
    await say(cli.io, 'the link works once and lets in whoever has it: hand it to that person alone');
  });
}

/** The way into the console as long as there is no user who could invite others. */
export async function setUpLink(cli: CliOf<typeof user.setUpLink>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const link = await ask('makeSetUpLink');
    await printThing(cli, link, [
      ['set-up link', link.url],
      ['works until', link.expiresAt],
    ]);
    await say(cli.io, 'the link works once, and whoever opens it first may do everything: open it in a browser soon');
  });
}

function userPairs(user: User): readonly Pair[] {
  return [
    ['username', user.username],
    ['id', user.id],
    ['name', user.displayName],
    ['first name', user.firstName],
    ['last name', user.lastName],
    ['email', user.email],
    ['flags', grantedTo(user)],
    ['API keys', user.keys.join(' ')],
    ['props', JSON.stringify(user.props)],
  ];
}

const userColumns: readonly Column<User>[] = [
  { title: 'username', value: (user) => user.username, name: true },
  { title: 'name', value: (user) => user.displayName },
  { title: 'email', value: (user) => user.email },
  { title: 'flags', value: grantedTo },
  { title: 'id', value: (user) => user.id, whole: true, spare: true },
];

function grantedTo({ flags }: Pick<User, 'flags'>): string {
  return Object.keys(flags)
    .filter((name) => flags[name] === true)
    .join(' ');
}

/** Of one who is made or invited. */
async function newUserFields(cli: CliOf<typeof newUser>) {
  return given({
    username: cli.get('<USERNAME>'),
    email: cli.get('--email'),
    firstName: cli.get('--first-name'),
    lastName: cli.get('--last-name'),
    flags: await flagsOf(cli),
    props: cli.get('--props'),
  });
}
