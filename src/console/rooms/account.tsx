// One account: what is known of it and its API keys; changing and deleting it.

import type { Account } from '../../api/account.ts';
import { hrefTo } from '../address.ts';
import { Failed, Loading, useAnswer } from '../parts/answer.tsx';
import { Button, ButtonLink } from '../parts/button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { Form } from '../parts/form.tsx';
import { Json } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import { toast } from '../parts/toast.tsx';
import { AccountFields, accountIn } from '../people/account-fields.tsx';
import { AccountKeys } from '../people/account-keys.tsx';
import type { RoomProps } from '../room.ts';

export function AccountRoom({ api, navigate, params }: RoomProps) {
  const id = params.id ?? '';
  const answer = useAnswer((signal) => api.getAccount({ id }, { signal }));
  const [isDeleting, setDeleting] = useState(false);
  const account = answer.is === 'ready' ? answer.value : undefined;
  return (
    <>
      <PageHeader
        title={account?.uid ?? 'Account'}
        windowTitle={`Account ${account?.uid ?? ''}`}
        back={{ href: hrefTo('accounts'), title: 'Accounts' }}
        actions={
          account && (
            <>
              <ButtonLink kind="quiet" href={hrefTo('newApikey', {}, { account: id })} needs="apikey.create">
                New API key
              </ButtonLink>
              <Button kind="danger" needs="account.delete" onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            </>
          )
        }
      />
      {answer.is === 'loading' && <Loading key="loading" />}
      {answer.is === 'failed' && <Failed key="failed" error={answer.error} onRetry={answer.reload} />}
      {account && <About key="about" {...{ api, account }} onChanged={answer.set} />}
      {account && <AccountKeys key="keys" api={api} account={account} />}
      {account && isDeleting && (
        <ConfirmByName
          key="delete"
          title={`Delete the account ${account.uid}?`}
          name={account.uid}
          action="Delete the account"
          busy="Deleting…"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.deleteAccount({ id: account.id });
            toast(`The account ${account.uid} is deleted.`);
            navigate(hrefTo('accounts'));
          }}
        >
          <p>All its API keys are deleted with it, and programs that use them are refused. This cannot be undone.</p>
        </ConfirmByName>
      )}
    </>
  );
}

interface AboutProps extends Pick<RoomProps, 'api'> {
  readonly account: Account;
  readonly onChanged: (account: Account) => void;
}

function About({ api, account, onChanged }: AboutProps) {
  const [isEditing, setEditing] = useState(false);
  return (
    <section data-panel>
      <div data-bar>
        <h2>About it</h2>
        {!isEditing && (
          <Button kind="quiet" needs="account.update" onClick={() => setEditing(true)}>
            Change
          </Button>
        )}
      </div>
      {isEditing ? (
        <Form
          key="edit"
          action="Save"
          busy="Saving…"
          onSubmit={async (values) => {
            onChanged(await api.updateAccount({ id: account.id, ...accountIn(values) }));
            setEditing(false);
            toast('The account is saved.');
          }}
          beside={
            <button type="button" data-kind="quiet" onClick={() => setEditing(false)}>
              Cancel
            </button>
          }
        >
          <AccountFields account={account} />
        </Form>
      ) : (
        <Facts
          key="show"
          facts={[
            ['UID', account.uid],
            ['Id', <Copyable text={account.id} what="the id of the account" />],
            ['Notes', account.notes === '' ? <span data-quiet>none</span> : account.notes],
            ['Properties', <Json value={account.props} />],
            ['Created', <Time at={account.createdAt} />],
            ['Changed', <Time at={account.updatedAt} />],
          ]}
        />
      )}
    </section>
  );
}
