// The keys that a keyring has had, the oldest first: what was encrypted with one of them stays readable.
import type { KeyListItem } from '../../api/key.ts';
import type { Client } from '../../client/client.ts';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { Json } from '../parts/json.tsx';

export interface KeyringKeysProps {
  readonly api: Client;
  readonly name: string;
  readonly activeKey: string;
}

export function KeyringKeys({ api, name, activeKey }: KeyringKeysProps) {
  const pages = usePages((page, signal) => api.listKeys({ ringname: name, ...page }, { signal }), [activeKey]);
  const columns: readonly Column<KeyListItem>[] = [
    {
      title: 'Key',
      kind: 'name',
      cell: ({ id }) => (
        <>
          <code>{id}</code>{' '}
          {id === activeKey && (
            <span data-tag data-tone="good">
              active
            </span>
          )}
        </>
      ),
    },
    { title: 'Type', cell: ({ type }) => type },
    { title: 'Properties', cell: ({ props }) => <Json value={props} /> },
  ];
  return (
    <section data-panel>
      <h2>Keys</h2>
      <DataTable
        caption={`Keys of ${name}`}
        columns={columns}
        pages={pages}
        keyOf={({ id }) => id}
        empty={<p>There is no key.</p>}
      />
    </section>
  );
}
