// TransitPage lists the rings whose keys the service holds, and those that were deleted and can still be brought back. They
// are made by the software that uses them, and by `kms transit`.
import type { TransitRing } from '../../api/transit.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';
import { Bin, type DeletedRings, JustDeleted } from './deleted-rings.tsx';

const columns: readonly Column<TransitRing>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo('transitRing', { name })}>{displayName}</a>,
  },
  { title: 'Type', cell: ({ type, derived }) => <code>{derived ? `${type}, derived` : type}</code> },
  { title: 'Custody', cell: ({ custody }) => custody },
  { title: 'Latest version', kind: 'number', cell: ({ latestVersion }) => latestVersion },
  { title: 'Decrypts from', kind: 'number', cell: ({ minDecryptionVersion }) => minDecryptionVersion },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function TransitPage({ api, navigate, query }: PageProps) {
  const all = useList((page, signal) => api.listTransitRings(page, { signal }), [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ name }) => [name]);
  const deletedRings: DeletedRings = {
    noun: 'transit ring',
    flags: 'transit',
    page: 'transitRing',
    navigate,
    list: (page, signal) => api.listTransitRings({ deleted: true, ...page }, { signal }),
    restore: (id) => api.restoreTransitRing({ id }),
  };
  return (
    <>
      <PageHeader
        title="Transit rings"
        lead={
          <>
            The service holds the keys of these rings (custody <code>server</code>), and works with them itself, for
            software that speaks Vault transit. So whoever has its master key and its database can use them, too. They
            are made by that software, or with <code>kms transit</code>.
          </>
        }
      />
      <JustDeleted {...deletedRings} query={query} />
      {all.items.length > 0 && <SearchBox label="Search by name" onInput={onInput} />}
      <DataTable
        caption="Transit rings"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<p>{sought === '' ? 'There is no transit ring.' : `No transit ring has “${sought}” in its name.`}</p>}
      />
      <Bin {...deletedRings} />
    </>
  );
}
