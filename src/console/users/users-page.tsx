// UsersPage lists the users.
import type { User } from '../../api/users.ts';
import type { Client } from '../../client/client.ts';
import { draftOf, flagsOf } from '../flags/draft.ts';
import { FlagSummary } from '../flags/flag-list.tsx';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { type Chip, compareTexts } from '../parts/arranging.ts';
import type { BulkAction } from '../parts/bulk.tsx';
import { ButtonLink } from '../parts/button.tsx';
import { Finder } from '../parts/finder.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { countedText } from '../text.ts';
import { mayDoEverything } from './users-keys.tsx';

const columns: readonly Column<User>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ username, displayName }) => (
      <a href={hrefTo('user', { username })} title={displayName}>
        <bdi>{displayName}</bdi>
      </a>
    ),
    sort: ({ displayName }) => displayName,
  },
  {
    title: 'User name',
    kind: 'long',
    cell: ({ username }) => <bdi title={username}>{username}</bdi>,
    sort: ({ username }) => username,
  },
  {
    title: 'E-mail',
    kind: 'long',
    shownFrom: 'widest',
    cell: ({ email }) => <bdi title={email}>{email}</bdi>,
    sort: ({ email }) => email,
  },
  {
    title: 'Permissions',
    kind: 'long',
    cell: ({ flags }) => <FlagSummary flags={flags} />,
    sort: ({ flags }) => Object.keys(flags).length,
  },
  {
    title: 'API keys',
    kind: 'number',
    shownFrom: 'wide',
    cell: ({ keys }) => keys.length,
    sort: ({ keys }) => keys.length,
  },
  {
    title: 'Last login',
    shownFrom: 'narrow',
    cell: (user) => (user.state === 'invited' ? <Invited /> : <Ago at={user.lastLoginAt} />),
    sort: ({ lastLoginAt }) => lastLoginAt,
  },
];

/** Marks a user who was invited and has not accepted yet. */
export function Invited() {
  return (
    <span data-tag data-tone="warn">
      invited
    </span>
  );
}

const chips: readonly Chip<User>[] = [
  { id: 'active', label: 'Active', group: 'state', has: ({ state }) => state === 'active' },
  { id: 'invited', label: 'Invited', group: 'state', has: ({ state }) => state === 'invited' },
  { id: 'everything', label: 'May do everything', group: 'flags', has: mayDoEverything },
  { id: 'nothing', label: 'May do nothing', group: 'flags', has: ({ flags }) => !Object.values(flags).includes(true) },
  { id: 'never', label: 'Never logged in', has: ({ lastLoginAt }) => lastLoginAt === null },
];

/** Those who log in first, the latest login first. */
function compareUsers(one: User, other: User): number {
  return (other.lastLoginAt ?? 0) - (one.lastLoginAt ?? 0) || compareTexts(one.username, other.username);
}

export function UsersPage({ api, session, keeper, navigate, query }: PageProps) {
  const list = useWholeList((page, signal) => api.listUsers(page, { signal }), keeper, 'users');
  return (
    <>
      <PageHeader
        title="Users"
        lead="People who log in here. Their permission flags say what they may do."
        actions={
          <ButtonLink href={hrefTo('newUser')} needs="user.invite">
            Invite a user
          </ButtonLink>
        }
      />
      <Finder<User>
        {...{ keeper, navigate, query, list, columns, chips }}
        page="users"
        caption="Users"
        label="Search by name, address or id"
        keyOf={({ id }) => id}
        nameOf={({ username }) => username}
        textsOf={({ id, username, displayName, email, keys }) => [id, username, displayName, email, ...keys]}
        compare={compareUsers}
        countOf={(count) => countedText(count, 'user')}
        actions={bulkActions(api, list.items, session.user?.id)}
        lookUp={(username, signal) => api.getUser({ username }, { signal })}
        empty={
          <>
            <p>There are no users yet.</p>
            <p>
              <ButtonLink href={hrefTo('newUser')} needs="user.invite">
                Invite the first one
              </ButtonLink>
            </p>
          </>
        }
      />
    </>
  );
}

/** `ownId`: the user who is logged in, who is left out. */
function bulkActions(api: Client, all: readonly User[], ownId: string | undefined): readonly BulkAction<User>[] {
  const hindrance = ({ id }: User) => (id === ownId ? 'This is you.' : undefined);
  const last = (users: readonly User[]) =>
    users.some(mayDoEverything) &&
    !all.some((user) => mayDoEverything(user) && !users.some(({ id }) => id === user.id)) && (
      <p key="last" data-note data-tone="warn">
        After that, <strong>no user may do everything</strong>.
      </p>
    );
  return [
    {
      label: 'Revoke permissions…',
      needs: 'user.update',
      title: (count) => `Revoke all permissions of ${count}?`,
      hindrance,
      about: (users) => (
        <>
          <p>They can still log in, and change nothing but their own details. Their API keys keep their flags.</p>
          {last(users)}
        </>
      ),
      action: 'Revoke',
      run: ({ username }) => api.updateUser({ username, flags: {} }),
      undo: ({ username, flags }) => api.updateUser({ username, flags: flagsOf(draftOf(flags)) }),
      done: (count) => `The permissions of ${count} are revoked.`,
    },
    {
      label: 'Delete…',
      needs: 'user.delete',
      kind: 'danger',
      title: (count) => `Delete ${count}?`,
      hindrance,
      about: (users) => (
        <>
          <WhatEnds users={users} />
          {last(users)}
        </>
      ),
      action: 'Delete',
      run: ({ username }) => api.deleteUser({ username }),
      done: (count) => `Deleted ${count}.`,
    },
  ];
}

function WhatEnds({ users }: { readonly users: readonly User[] }) {
  const keys = users.reduce((sum, user) => sum + user.keys.length, 0);
  return (
    <p>
      Their sessions end{keys > 0 && `, and their API keys are disabled: ${countedText(keys, 'key')}`}. This cannot be
      undone.
    </p>
  );
}
