// The API keys of an account.
import type { Account } from '../../api/account.ts';
import type { SafeApiKey } from '../../api/apikey.ts';
import type { Client } from '../../client/client.ts';
import { keyColumn } from '../apikeys/key-column.tsx';
import { useLack } from '../parts/button.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { Time } from '../parts/time.tsx';
import { FlagSummary } from './flag-summary.tsx';

export interface AccountKeysProps {
  readonly api: Client;
  readonly account: Account;
}

const columns: readonly Column<SafeApiKey>[] = [
  keyColumn,
  { title: 'Permissions', cell: ({ flags }) => <FlagSummary flags={flags} /> },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function AccountKeys(props: AccountKeysProps) {
  const lacks = useLack('apikey.read');
  return (
    <section data-panel>
      <h2>API keys</h2>
      {lacks === undefined ? <List {...props} /> : <p data-quiet>{lacks}</p>}
    </section>
  );
}

function List({ api, account }: AccountKeysProps) {
  const pages = usePages((page, signal) => api.listAccountApiKeys({ accountId: account.id, ...page }, { signal }));
  return (
    <DataTable
      caption={`API keys of ${account.uid}`}
      columns={columns}
      pages={pages}
      keyOf={({ keyid }) => keyid}
      empty={<p>This account has no API key.</p>}
    />
  );
}
