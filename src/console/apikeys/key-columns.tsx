// How API keys stand in a table.
import type { SafeApiKey } from '../../api/apikey.ts';
import { hrefTo } from '../address.ts';
import { shortId } from '../id-text.ts';
import type { Column } from '../parts/data-table.tsx';
import { Time } from '../parts/time.tsx';
import { FlagSummary } from '../people/flag-summary.tsx';

export const apiKeyColumns: readonly Column<SafeApiKey>[] = [
  {
    title: 'Id',
    kind: 'name',
    cell: ({ keyid }) => (
      <a href={hrefTo('apikey', { id: keyid })}>
        <code data-whole title={keyid}>{`apik_${shortId(keyid)}`}</code>
      </a>
    ),
  },
  { title: 'State', cell: ({ active }) => <ActiveTag active={active} /> },
  { title: 'Flags', cell: ({ flags }) => <FlagSummary flags={flags} /> },
  {
    title: 'Account',
    cell: ({ references: { accountId } }) => (
      <a href={hrefTo('account', { id: accountId })}>
        <code data-whole title={accountId}>{`acct_${shortId(accountId)}`}</code>
      </a>
    ),
  },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function ActiveTag({ active }: { readonly active: boolean }) {
  return (
    <span data-tag data-tone={active ? 'good' : 'bad'}>
      {active ? 'active' : 'disabled'}
    </span>
  );
}
