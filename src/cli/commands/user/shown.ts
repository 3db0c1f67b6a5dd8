// How a user is shown to people, and what the options of a new one say.
import type { User } from '../../../api/user.ts';
import { type Cli, given } from '../../cli.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';
import { flagsOf } from '../apikey/shown.ts';

export function userPairs(user: User): readonly Pair[] {
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

export const userColumns: readonly Column<User>[] = [
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
export async function newUserFields(cli: Cli) {
  return given({
    username: cli.arg(0),
    email: cli.needed('--email'),
    firstName: cli.needed('--first-name'),
    lastName: cli.needed('--last-name'),
    flags: await flagsOf(cli),
    props: cli.object('--props'),
  });
}
