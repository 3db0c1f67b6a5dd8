// API keys: all, of an account, or of a ring; and whether one is valid.

import { hrefTo } from '../address.ts';
import { apiKeyColumns } from '../apikeys/key-columns.tsx';
import { filterOfQuery, type KeyFilter, KeyFilterForm } from '../apikeys/key-filter.tsx';
import { ValidateKey } from '../apikeys/validate-key.tsx';
import { ButtonLink } from '../parts/button.tsx';
import { DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import type { RoomProps } from '../room.ts';

export function ApikeysRoom({ api, navigate, query }: RoomProps) {
  const filter = filterOfQuery(query);
  return (
    <>
      <PageHeader
        title="API keys"
        lead="What programs show to be let in. Each belongs to an account and may do what its flags say."
        actions={
          <ButtonLink href={hrefTo('newApikey', {}, { account: filter.account || undefined })} needs="apikey.create">
            New API key
          </ButtonLink>
        }
      />
      <KeyFilterForm api={api} filter={filter} navigate={navigate} />
      <List api={api} filter={filter} />
      <ValidateKey api={api} />
    </>
  );
}

function List({ api, filter }: { readonly api: RoomProps['api']; readonly filter: KeyFilter }) {
  const { account, ring, wildcard } = filter;
  const pages = usePages(
    (page, signal) => {
      if (account !== '') return api.listAccountApiKeys({ accountId: account, uid: true, ...page }, { signal });
      if (ring === '') return api.listApiKeys(page, { signal });
      return api.searchKeyringApiKeys({ keyringname: ring, ...(wildcard && { wildcard }), ...page }, { signal });
    },
    [account, ring, wildcard],
  );
  return (
    <DataTable
      caption={captionOf(filter)}
      columns={apiKeyColumns}
      pages={pages}
      keyOf={({ keyid }) => keyid}
      empty={<Empty filter={filter} />}
    />
  );
}

function captionOf({ account, ring }: KeyFilter): string {
  if (account !== '') return `API keys of the account ${account}`;
  return ring === '' ? 'All API keys' : `API keys that may use the ring ${ring}`;
}

function Empty({ filter: { account, ring, wildcard } }: { readonly filter: KeyFilter }) {
  if (account !== '') return <p>The account {account} has no API keys.</p>;
  if (ring === '') return <p>There are no API keys yet.</p>;
  return (
    <p>{wildcard ? `No key may use ${ring}.` : `No key names ${ring} in its flags; a wildcard may let some in.`}</p>
  );
}
