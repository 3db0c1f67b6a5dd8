// All accounts, which API keys belong to.
import type { Account } from '../../api/account.ts';
import { hrefTo } from '../address.ts';
import { ButtonLink } from '../parts/button.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';

const columns: readonly Column<Account>[] = [
  { title: 'UID', kind: 'name', cell: ({ id, uid }) => <a href={hrefTo('account', { id })}>{uid}</a> },
  { title: 'Notes', cell: ({ notes }) => <bdi data-beginning>{notes}</bdi> },
  { title: 'Id', cell: ({ id }) => <code>{id}</code> },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function AccountsRoom({ api }: RoomProps) {
  const pages = usePages((page, signal) => api.listAccounts(page, { signal }));
  return (
    <>
      <PageHeader
        title="Accounts"
        lead="An account stands for a customer, a team or a program of yours. Each API key belongs to one."
        actions={
          <ButtonLink href={hrefTo('newAccount')} needs="account.create">
            New account
          </ButtonLink>
        }
      />
      <DataTable
        caption="Accounts"
        columns={columns}
        pages={pages}
        keyOf={({ id }) => id}
        empty={<p>There is no account yet.</p>}
      />
    </>
  );
}
