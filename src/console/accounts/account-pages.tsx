// AccountsPage lists the accounts, which API keys belong to; NewAccountPage creates one; AccountPage shows one with its
// API keys, and changes or deletes it.
import type { Account } from '../../api/accounts.ts';
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { keyColumn } from '../apikeys/apikeys-page.tsx';
import { Mighty } from '../apikeys/disable-key.tsx';
import { stateOf } from '../apikeys/key-change.ts';
import { FlagSummary } from '../flags/flag-list.tsx';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, ButtonLink, useLack } from '../parts/button.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Field, JsonField, TextArea } from '../parts/fields.tsx';
import { Finder } from '../parts/finder.tsx';
import { EditPanel, Form, type FormValues } from '../parts/form.tsx';
import { Failed, Loading, toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useBegunList, useState, useWholeList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Ago, Copyable, Facts, Json, Time } from '../parts/values.tsx';
import { countedText, countText } from '../text.ts';

const accountColumns: readonly Column<Account>[] = [
  {
    title: 'UID',
    kind: 'name',
    cell: ({ id, uid }) => (
      <a href={hrefTo('account', { id })} title={uid}>
        {uid}
      </a>
    ),
    sort: ({ uid }) => uid,
  },
  {
    title: 'Notes',
    kind: 'long',
    cell: ({ notes }) => (
      <bdi data-beginning title={notes || undefined}>
        {notes}
      </bdi>
    ),
    sort: ({ notes }) => notes || null,
  },
  { title: 'Id', shownFrom: 'widest', kind: 'long', cell: ({ id }) => <code title={id}>{id}</code> },
  {
    title: 'Created',
    shownFrom: 'medium',
    cell: ({ createdAt }) => <Ago at={createdAt} />,
    sort: ({ createdAt }) => createdAt,
  },
];

const lossOfOne =
  'All its API keys are deleted with it, and programs that use them are refused. This cannot be undone.';
const lossOfSeveral =
  'All API keys of these accounts are deleted with them, and programs that use them are refused. This cannot be undone.';

export function AccountsPage({ api, keeper, navigate, query }: PageProps) {
  const list = useWholeList((page, signal) => api.listAccounts(page, { signal }), keeper, 'accounts');
  return (
    <>
      <PageHeader
        title="Accounts"
        lead="An account stands for one of your customers, teams or programs. Each API key belongs to one account."
        actions={
          <ButtonLink href={hrefTo('newAccount')} needs="account.create">
            New account
          </ButtonLink>
        }
      />
      <Finder<Account>
        {...{ keeper, navigate, query, list }}
        page="accounts"
        caption="Accounts"
        label="Search by UID, id or notes"
        columns={accountColumns}
        chips={[]}
        keyOf={({ id }) => id}
        nameOf={({ uid }) => uid}
        textsOf={({ id, uid, notes }) => [id, uid, notes]}
        compare={(one, other) => other.createdAt.localeCompare(one.createdAt)}
        countOf={(count) => countedText(count, 'account')}
        actions={[
          {
            label: 'Delete…',
            needs: 'account.delete',
            kind: 'danger',
            title: (count) => `Delete ${count}?`,
            about: (accounts) => (
              <>
                <p>{accounts.length === 1 ? lossOfOne : lossOfSeveral}</p>
                <KeysThatEnd api={api} ids={accounts.map(({ id }) => id)} />
              </>
            ),
            action: 'Delete',
            run: ({ id }) => api.deleteAccount({ id }),
            done: (count) => `Deleted ${count}.`,
          },
        ]}
        lookUp={(uid, signal) => api.getAccount({ id: uid, uid: true }, { signal })}
        empty={<p>There are no accounts yet.</p>}
      />
    </>
  );
}

export function NewAccountPage({ api, navigate }: PageProps) {
  return (
    <>
      <PageHeader title="New account" back={{ href: hrefTo('accounts'), title: 'Accounts' }} />
      <Form
        action="Create the account"
        busy="Creating it…"
        needs="account.create"
        onSubmit={async (values) => {
          const { id, uid } = await api.createAccount(accountIn(values));
          toast(`The account ${uid} has been created.`);
          navigate(hrefTo('account', { id }), 'replace');
        }}
      >
        <AccountFields />
      </Form>
    </>
  );
}

function AccountFields({ account }: { readonly account?: Account }) {
  return (
    <>
      <Field
        name="uid"
        label="UID"
        hint="Your own name for it, such as a customer number. Upper and lower case differ."
        value={account?.uid ?? ''}
        isRequired
      />
      <TextArea name="notes" label="Notes" value={account?.notes ?? ''} />
      <JsonField name="props" label="Properties" value={account?.props ?? {}} />
    </>
  );
}

function accountIn(values: FormValues) {
  return { uid: values.text('uid'), notes: values.text('notes'), props: objectIn(values, 'props') };
}

export function AccountPage({ api, navigate, params }: PageProps) {
  const id = params.id ?? '';
  const answer = useAnswer((signal) => api.getAccount({ id, apikeys: true }, { signal }));
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
      {account && (
        <About key="about" {...{ api, account }} onChanged={(changed) => answer.set({ ...account, ...changed })} />
      )}
      {account && <AccountKeys key="keys" {...{ api, account }} />}
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
            toast(`The account ${account.uid} has been deleted.`);
            navigate(hrefTo('accounts'));
          }}
        >
          <p>{lossOfOne}</p>
          <KeysThatEnd api={api} ids={[account.id]} />
        </ConfirmByName>
      )}
    </>
  );
}

/** Keys that are counted; more are too many to tell of. */
const mostCounted = 10_000;

interface KeysThatEndProps {
  readonly api: Client;
  /** Ids of the accounts. */
  readonly ids: readonly string[];
}

/** Counts the API keys that are deleted with accounts, with their last use and those that may do everything. */
function KeysThatEnd({ api, ids }: KeysThatEndProps) {
  const answer = useAnswer(async (signal) => {
    const [id, ...others] = ids;
    const { data, pagination } =
      id !== undefined && others.length === 0
        ? await api.listAccountApiKeys({ accountId: id, limit: mostCounted }, { signal })
        : await api.listApiKeys({ limit: mostCounted }, { signal });
    return {
      keys: data.filter(({ references }) => ids.includes(references.accountId)),
      hasMore: pagination.hasMore,
    };
  });
  if (answer.is === 'loading') return <Loading key="loading" />;
  if (answer.is === 'failed') return <p key="failed">You are not allowed to see which these are.</p>;
  const { keys, hasMore } = answer.value;
  const them = ids.length === 1 ? 'it' : 'them';
  if (keys.length === 0 && !hasMore) return <p key="none">No API keys go with {them}.</p>;
  const latest = Math.max(...keys.map(({ lastUsedAt }) => lastUsedAt ?? 0));
  return (
    <p key="keys" data-note data-tone="warn">
      {hasMore && 'More than '}
      {countedText(keys.length, 'API key')} {keys.length === 1 ? 'goes' : 'go'} with {them}, {activeText(keys)};{' '}
      {latest <= 0 ? (
        `${keys.length === 1 ? 'it' : 'none'} was ${keys.length === 1 ? 'never' : 'ever'} used.`
      ) : (
        <span key="used">
          the last use was <Ago at={latest} />.
        </span>
      )}
      <Mighty keys={keys} />
    </p>
  );
}

/** `2 of them active`, of keys that are neither disabled nor expired. */
function activeText(keys: readonly SafeApiKey[]): string {
  const active = keys.filter((key) => stateOf(key, Date.now()) === 'active').length;
  if (keys.length === 1) return active === 1 ? 'which is active' : 'which is not active';
  return `${active === keys.length ? 'all' : active === 0 ? 'none' : countText(active)} of them active`;
}

interface AboutProps extends Pick<PageProps, 'api'> {
  readonly account: Account;
  readonly onChanged: (account: Account) => void;
}

function About({ api, account, onChanged }: AboutProps) {
  return (
    <EditPanel
      title="Details"
      change="Change"
      action="Save"
      needs="account.update"
      onSave={async (values) => onChanged(await api.updateAccount({ id: account.id, ...accountIn(values) }))}
      saved="The account is saved."
      fields={<AccountFields account={account} />}
      shown={
        <Facts
          key="show"
          facts={[
            ['UID', account.uid],
            ['Id', <Copyable text={account.id} what="the id of the account" />],
            ['Notes', account.notes === '' ? <span data-quiet>none</span> : account.notes],
            ['Properties', <Json value={account.props} />],
            ['Created', <Time at={account.createdAt} />],
            ['Changed', <Time at={account.updatedAt} />],
            [
              'Activity',
              <a href={hrefTo('activityAbout', { kind: 'account', id: account.id })}>Everything about it</a>,
            ],
          ]}
        />
      }
    />
  );
}

interface AccountKeysProps {
  readonly api: Client;
  /** With its API keys, if the user may see them. */
  readonly account: AnswerTo<'getAccount'>;
}

const keyColumns: readonly Column<SafeApiKey>[] = [
  keyColumn,
  { title: 'Permissions', cell: ({ flags }) => <FlagSummary flags={flags} /> },
  { title: 'Expires', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
  { title: 'Last used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
];

function AccountKeys(props: AccountKeysProps) {
  const lacks = useLack('apikey.read');
  return (
    <section data-panel>
      <h2>API keys</h2>
      {lacks === undefined ? <List {...props} /> : <p data-quiet>{lacks}</p>}
    </section>
  );
}

function List({ api, account }: AccountKeysProps) {
  const list = useBegunList(account.apikeys, (page, signal) =>
    api.listAccountApiKeys({ accountId: account.id, ...page }, { signal }),
  );
  return (
    <DataTable
      caption={`API keys of ${account.uid}`}
      columns={keyColumns}
      list={list}
      keyOf={({ keyid }) => keyid}
      fold={10}
      empty={<p>This account has no API keys.</p>}
    />
  );
}
