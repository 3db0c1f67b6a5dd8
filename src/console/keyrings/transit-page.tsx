// TransitPage lists the rings whose keys the service holds, with their versions. They are made and changed by the
// software that uses them, and by `kms transit`.
import type { TransitRing } from '../../api/transit.ts';
import type { PageProps } from '../page.ts';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';

const columns: readonly Column<TransitRing>[] = [
  { title: 'Name', kind: 'name', cell: ({ displayName }) => displayName },
  { title: 'Type', cell: ({ type, derived }) => <code>{derived ? `${type}, derived` : type}</code> },
  { title: 'Custody', cell: ({ custody }) => custody },
  { title: 'Latest version', kind: 'number', cell: ({ latestVersion }) => latestVersion },
  { title: 'Decrypts from', kind: 'number', cell: ({ minDecryptionVersion }) => minDecryptionVersion },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function TransitPage({ api }: PageProps) {
  const all = useList((page, signal) => api.listTransitRings(page, { signal }), [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ name }) => [name]);
  return (
    <>
      <PageHeader
        title="Transit rings"
        lead={
          <>
            The service holds the keys of these rings (custody <code>server</code>), and works with them itself, for
            software that speaks Vault transit. So whoever has its master key and its database can use them, too. They
            are made and changed by that software, or with <code>kms transit</code>.
          </>
        }
      />
      {all.items.length > 0 && <SearchBox label="Search by name" onInput={onInput} />}
      <DataTable
        caption="Transit rings"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<p>{sought === '' ? 'There is no transit ring.' : `No transit ring has “${sought}” in its name.`}</p>}
      />
    </>
  );
}
