// All users, searched by name and address while one types.
import { useEffect } from 'hono/jsx/dom';
import type { User } from '../../api/user.ts';
import { hrefTo } from '../address.ts';
import { ButtonLink } from '../parts/button.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { SearchBox } from '../parts/search-box.tsx';
import { useState } from '../parts/state.ts';
import { FlagSummary } from '../people/flag-summary.tsx';
import type { RoomProps } from '../room.ts';

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
];

export function UsersRoom({ api }: RoomProps) {
  const [sought, setSought] = useState('');
  const pages = usePages((page, signal) => api.listUsers(page, { signal }), [], 500);
  const words = sought.trim().toLowerCase();
  const found = pages.items.filter(({ username, displayName, email }) =>
    [username, displayName, email].some((text) => text.toLowerCase().includes(words)),
  );

  // Whoever is sought may be on a page that is not here yet.
  useEffect(() => {
    if (words !== '' && pages.hasMore && pages.is === 'ready') pages.more();
  });

  return (
    <>
      <PageHeader
        title="Users"
        lead="People who log in here. What they may do is what their permission flags say."
        actions={
          <ButtonLink href={hrefTo('newUser')} needs="user.invite">
            Invite a user
          </ButtonLink>
        }
      />
      {pages.items.length > 0 && <SearchBox label="Search by name or address" onInput={setSought} />}
      <DataTable
        caption="Users"
        columns={columns}
        pages={{ ...pages, items: found }}
        keyOf={({ id }) => id}
        empty={
          words === '' ? (
            <>
              <p>There is no user yet.</p>
              <p>
                <ButtonLink href={hrefTo('newUser')} needs="user.invite">
                  Invite the first one
                </ButtonLink>
              </p>
            </>
          ) : (
            <p>No user has “{sought.trim()}” in their name or address.</p>
          )
        }
      />
    </>
  );
}
