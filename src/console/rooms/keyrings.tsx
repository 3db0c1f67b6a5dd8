// All keyrings, searched by name while one types; and the way back for those that were deleted.
import { useEffect } from 'hono/jsx/dom';
import type { KeyRing } from '../../api/keyring.ts';
import { hrefTo } from '../address.ts';
import { JustDeleted, RestoreById } from '../keyrings/restore.tsx';
import { ButtonLink } from '../parts/button.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { SearchBox } from '../parts/search-box.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';

const columns: readonly Column<KeyRing>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo('keyring', { name })}>{displayName}</a>,
  },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

export function KeyringsRoom({ api, navigate, query }: RoomProps) {
  const [sought, setSought] = useState('');
  const pages = usePages((page, signal) => api.listKeyrings(page, { signal }), [], 500);
  const found = pages.items.filter(({ name }) => name.includes(sought.trim().toLowerCase()));
  const isSeeking = sought.trim() !== '';

  // What is sought may be on a page that is not here yet.
  useEffect(() => {
    if (isSeeking && pages.hasMore && pages.is === 'ready') pages.more();
  });

  return (
    <>
      <PageHeader
        title="Keyrings"
        lead="A keyring holds the keys that data are encrypted with. Its private key, with which they are unwrapped, is never kept here."
        actions={
          <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
            New keyring
          </ButtonLink>
        }
      />
      <JustDeleted {...{ api, navigate, query }} />
      {pages.items.length > 0 && <SearchBox label="Search by name" onInput={setSought} />}
      <DataTable
        caption="Keyrings"
        columns={columns}
        pages={{ ...pages, items: found }}
        keyOf={({ id }) => id}
        empty={
          isSeeking ? (
            <p>No keyring has “{sought.trim()}” in its name.</p>
          ) : (
            <>
              <p>There is no keyring yet. Data are encrypted with the keys of one.</p>
              <p>
                <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
                  Make the first keyring
                </ButtonLink>
              </p>
            </>
          )
        }
      />
      <RestoreById {...{ api, navigate }} />
    </>
  );
}
