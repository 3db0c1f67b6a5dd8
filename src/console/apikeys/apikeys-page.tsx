// ApikeysPage lists API keys (all, those of an account, or those for a ring) and checks whether a key is valid. Other
// tables of API keys take their columns from here.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client } from '../../client/client.ts';
import { FlagSummary } from '../flags/flag-list.tsx';
import { useAccountUids, useActorNames, useRingNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { Check, Field } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { announce } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Day } from '../parts/values.tsx';
import { stateOf } from './key-change.ts';
import { KeyName, Maker, StateTag } from './key-fields.tsx';

export function ApikeysPage({ api, navigate, query }: PageProps) {
  const filter = filterOfQuery(query);
  const uids = useAccountUids();
  return (
    <>
      <PageHeader
        title="API keys"
        lead="Programs log in with these. Each belongs to an account and may do what its flags allow."
        actions={
          <ButtonLink href={hrefTo('newApikey', {}, { account: filter.account || undefined })} needs="apikey.create">
            New API key
          </ButtonLink>
        }
      />
      <KeyFilterForm filter={filter} uids={[...uids.values()]} navigate={navigate} />
      <List api={api} filter={filter} uids={uids} />
      <ValidateKey api={api} />
    </>
  );
}

interface ListProps {
  readonly api: PageProps['api'];
  readonly filter: KeyFilter;
  /** UIDs by account id. */
  readonly uids: ReadonlyMap<string, string>;
}

function List({ api, filter, uids }: ListProps) {
  const { account, ring, wildcard } = filter;
  const list = useList(
    (page, signal) => {
      if (account !== '') return api.listAccountApiKeys({ accountId: account, uid: true, ...page }, { signal });
      if (ring === '') return api.listApiKeys(page, { signal });
      return api.searchKeyringApiKeys({ keyringname: ring, ...(wildcard && { wildcard }), ...page }, { signal });
    },
    [account, ring, wildcard],
  );
  const names = useActorNames();
  return (
    <DataTable
      caption={captionOf(filter)}
      columns={apiKeyColumns(uids, names)}
      list={list}
      keyOf={({ keyid }) => keyid}
      empty={<Empty filter={filter} />}
    />
  );
}

function captionOf({ account, ring }: KeyFilter): string {
  if (account !== '') return `API keys of the account ${account}`;
  return ring === '' ? 'All API keys' : `API keys that may use the keyring ${ring}`;
}

function Empty({ filter: { account, ring, wildcard } }: { readonly filter: KeyFilter }) {
  if (account !== '') return <p>The account {account} has no API keys.</p>;
  if (ring === '') return <p>There are no API keys yet.</p>;
  return (
    <p>{wildcard ? `No key may use ${ring}.` : `No key names ${ring} in its flags; a wildcard may let some in.`}</p>
  );
}

interface KeyFilter {
  /** An account's UID. */
  readonly account: string;
  /** A ring's name. */
  readonly ring: string;
  /** Whether to include keys that a wildcard admits. */
  readonly wildcard: boolean;
}

function filterOfQuery(query: URLSearchParams): KeyFilter {
  return {
    account: query.get('account') ?? '',
    ring: query.get('ring') ?? '',
    wildcard: query.get('wildcard') === 'yes',
  };
}

interface KeyFilterFormProps {
  readonly filter: KeyFilter;
  readonly uids: readonly string[];
  readonly navigate: (href: string) => void;
}

/** Chooses the API keys to list: all, those of an account, or those that may use a ring. */
function KeyFilterForm({ filter, uids, navigate }: KeyFilterFormProps) {
  const rings = useRingNames();
  return (
    <section aria-label="Which keys" data-panel data-filters>
      <Form
        action="Show"
        onSubmit={async (values) => {
          const [account, ring, keyid] = [values.text('account'), values.text('ring'), values.text('keyid')];
          if (keyid !== '') return navigate(hrefTo('apikey', { id: keyid }));
          navigate(
            hrefTo(
              'apikeys',
              {},
              {
                account: account || undefined,
                ring: account === '' && ring !== '' ? ring : undefined,
                wildcard: account === '' && ring !== '' && values.isOn('wildcard') ? 'yes' : undefined,
              },
            ),
          );
        }}
        beside={
          <a href={hrefTo('apikeys')} data-button data-kind="quiet">
            Show all
          </a>
        }
      >
        <div data-columns>
          <Field name="account" label="UID of the account" value={filter.account} proposals={uids} />
          <Field name="ring" label="Or a keyring that they may use" value={filter.ring} proposals={rings} />
          <Field name="keyid" label="Or the id of one key" />
        </div>
        <Check name="wildcard" label="For a keyring, also keys that a wildcard lets in" isOn={filter.wildcard} />
      </Form>
    </section>
  );
}

type Verdict = 'unasked' | 'valid' | 'invalid';

/** The key exists only in its field, which is emptied once the response is there. */
function ValidateKey({ api }: { readonly api: Client }) {
  const [verdict, setVerdict] = useState<Verdict>('unasked');
  const [turn, setTurn] = useState(0);
  return (
    <section data-panel>
      <h2>Is a key valid?</h2>
      <Form
        key={turn}
        action="Check"
        needs="apikey.validate"
        onSubmit={async (values) => {
          const { valid } = await api.validateApiKey({ key: values.text('key') });
          setVerdict(valid ? 'valid' : 'invalid');
          setTurn(turn + 1);
          announce(textOf(valid ? 'valid' : 'invalid'));
        }}
      >
        <Field
          name="key"
          label="Secret of the API key"
          type="password"
          hint="It is sent to this service and shown nowhere."
          isRequired
        />
      </Form>
      {verdict !== 'unasked' && (
        <p data-note data-tone={verdict === 'valid' ? 'good' : 'bad'}>
          {textOf(verdict)}
        </p>
      )}
    </section>
  );
}

function textOf(verdict: 'valid' | 'invalid'): string {
  return verdict === 'valid'
    ? 'Valid: the key exists here, is active and has not expired.'
    : 'Not valid: this service does not have the key, or it is disabled or has expired.';
}

function apiKeyColumns(
  uids: ReadonlyMap<string, string>,
  names: ReadonlyMap<string, string>,
): readonly Column<SafeApiKey>[] {
  return [
    { title: 'Name', kind: 'name', cell: (apiKey) => <KeyName apiKey={apiKey} /> },
    { title: 'State', cell: (apiKey) => <StateTag apiKey={apiKey} /> },
    { title: 'Flags', cell: ({ flags }) => <FlagSummary flags={flags} /> },
    {
      title: 'Account',
      cell: ({ references: { accountId } }) => (
        <a href={hrefTo('account', { id: accountId })}>{uids.get(accountId) ?? <code data-any>{accountId}</code>}</a>
      ),
    },
    { title: 'Expires', cell: ({ expiresAt }) => <Day at={expiresAt} /> },
    { title: 'Last used', cell: ({ lastUsedAt }) => <Day at={lastUsedAt} /> },
    { title: 'Created by', cell: ({ createdBy }) => <Maker id={createdBy} names={names} /> },
  ];
}

export const keyColumn: Column<SafeApiKey> = {
  title: 'API key',
  kind: 'name',
  cell: (apiKey) => (
    <>
      <KeyName apiKey={apiKey} /> {stateOf(apiKey, Date.now()) !== 'active' && <StateTag apiKey={apiKey} />}
    </>
  ),
};
