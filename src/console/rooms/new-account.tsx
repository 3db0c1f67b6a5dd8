// Makes an account.
import { hrefTo } from '../address.ts';
import { Form } from '../parts/form.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { toast } from '../parts/toast.tsx';
import { AccountFields, accountIn } from '../people/account-fields.tsx';
import type { RoomProps } from '../room.ts';

export function NewAccountRoom({ api, navigate }: RoomProps) {
  return (
    <>
      <PageHeader title="New account" back={{ href: hrefTo('accounts'), title: 'Accounts' }} />
      <Form
        action="Make the account"
        busy="Making it…"
        needs="account.create"
        onSubmit={async (values) => {
          const { id, uid } = await api.createAccount(accountIn(values));
          toast(`The account ${uid} is made.`);
          navigate(hrefTo('account', { id }), 'replace');
        }}
      >
        <AccountFields />
      </Form>
    </>
  );
}
