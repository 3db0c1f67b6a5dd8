// UsersPage lists the users, with a search by name and address.
import type { User } from '../../api/users.ts';
import { FlagSummary } from '../flags/flag-list.tsx';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Moment } from '../parts/values.tsx';

const columns: readonly Column<User>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ username, displayName }) => (
      <a href={hrefTo('user', { username })}>
        <bdi>{displayName}</bdi>
      </a>
    ),
  },
  { title: 'User name', cell: ({ username }) => <bdi>{username}</bdi> },
  { title: 'E-mail', cell: ({ email }) => <bdi>{email}</bdi> },
  { title: 'Permissions', cell: ({ flags }) => <FlagSummary flags={flags} /> },
  { title: 'API keys', kind: 'number', cell: ({ keys }) => keys.length },
  { title: 'Last login', cell: (user) => (user.state === 'invited' ? <Invited /> : <Moment at={user.lastLoginAt} />) },
];

/** Marks a user who was invited and has not accepted yet. */
export function Invited() {
  return (
    <span data-tag data-tone="warn">
      invited
    </span>
  );
}

export function UsersPage({ api }: PageProps) {
  const all = useList((page, signal) => api.listUsers(page, { signal }), [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ username, displayName, email }) => [
    username,
    displayName,
    email,
  ]);
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
      {all.items.length > 0 && <SearchBox label="Search by name or address" onInput={onInput} />}
      <DataTable
        caption="Users"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={
          sought === '' ? (
            <>
              <p>There are no users yet.</p>
              <p>
                <ButtonLink href={hrefTo('newUser')} needs="user.invite">
                  Invite the first one
                </ButtonLink>
              </p>
            </>
          ) : (
            <p>No user has “{sought}” in their name or address.</p>
          )
        }
      />
    </>
  );
}
