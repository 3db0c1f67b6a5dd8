// KeyringsPage lists the keyrings, searched by name while one types, and those that were deleted and can still be brought
// back.
import type { KeyRing } from '../../api/keyrings.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';
import { Bin, type DeletedRings, JustDeleted } from './deleted-rings.tsx';

const columns: readonly Column<KeyRing>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo('keyring', { name })}>{displayName}</a>,
  },
  { title: 'Custody', cell: ({ custody }) => custody },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

export function KeyringsPage({ api, navigate, query }: PageProps) {
  const all = useList((page, signal) => api.listKeyrings(page, { signal }), [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ name }) => [name]);
  const deletedRings: DeletedRings = {
    noun: 'keyring',
    flags: 'keyring',
    page: 'keyring',
    navigate,
    list: (page, signal) => api.listKeyrings({ deleted: true, ...page }, { signal }),
    restore: (id) => api.restoreKeyring({ id }),
  };
  return (
    <>
      <PageHeader
        title="Keyrings"
        lead={
          <>
            A keyring holds the keys that data are encrypted with. Its private key, with which they are unwrapped, is
            never kept here.
          </>
        }
        actions={
          <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
            New keyring
          </ButtonLink>
        }
      />
      <JustDeleted {...deletedRings} query={query} />
      {all.items.length > 0 && <SearchBox label="Search by name" onInput={onInput} />}
      <DataTable
        caption="Keyrings"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={
          sought !== '' ? (
            <p>No keyring has “{sought}” in its name.</p>
          ) : (
            <>
              <p>There is no keyring yet. Data are encrypted with the keys of one.</p>
              <p>
                <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
                  Create the first keyring
                </ButtonLink>
              </p>
            </>
          )
        }
      />
      <Bin {...deletedRings} />
    </>
  );
}
