// The column of a table of API keys that says which one, and whether it is of use.
import type { SafeApiKey } from '../../api/apikey.ts';
import { hrefTo } from '../address.ts';
import type { Column } from '../parts/data-table.tsx';

export const keyColumn: Column<SafeApiKey> = {
  title: 'API key',
  kind: 'name',
  cell: ({ keyid, active }) => (
    <>
      <a href={hrefTo('apikey', { id: keyid })}>
        <code>{keyid}</code>
      </a>{' '}
      {!active && (
        <span data-tag data-tone="bad">
          disabled
        </span>
      )}
    </>
  ),
};
