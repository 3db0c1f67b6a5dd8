// Which API keys a keyring is used by: those whose flags name it, and those that a wildcard lets in.
import type { SafeApiKey } from '../../api/apikey.ts';
import type { Client } from '../../client/client.ts';
import { hrefTo } from '../address.ts';
import { keyColumn } from '../apikeys/key-column.tsx';
import { useLack } from '../parts/button.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { namesRing, ringFlags } from './ring-use.ts';

export interface KeyringUsersProps {
  readonly api: Client;
  readonly name: string;
}

export function KeyringUsers(props: KeyringUsersProps) {
  const lacks = useLack('apikey.read');
  return (
    <section data-panel>
      <h2>Used by</h2>
      {lacks === undefined ? <List {...props} /> : <p data-quiet>{lacks}</p>}
    </section>
  );
}

function List({ api, name }: KeyringUsersProps) {
  const pages = usePages((page, signal) =>
    api.searchKeyringApiKeys({ keyringname: name, wildcard: true, ...page }, { signal }),
  );
  const columns: readonly Column<SafeApiKey>[] = [
    keyColumn,
    {
      title: 'Account',
      cell: ({ references }) => (
        <a href={hrefTo('account', { id: references.accountId })}>
          <code>{references.accountId}</code>
        </a>
      ),
    },
    {
      title: 'By',
      cell: ({ flags }) => {
        const names = ringFlags(flags, name);
        return (
          <>
            {namesRing(names, name) ? '' : <span data-tag>wildcard</span>} {names.join(', ')}
          </>
        );
      },
    },
  ];
  return (
    <>
      <p data-quiet>
        API keys whose flags name the keyring, and those that a wildcard lets in. A keyring cannot be deleted while
        another active key names it.
      </p>
      <DataTable
        caption={`API keys that may use ${name}`}
        columns={columns}
        pages={pages}
        keyOf={({ keyid }) => keyid}
        empty={<p>No API key may use this keyring.</p>}
      />
    </>
  );
}
