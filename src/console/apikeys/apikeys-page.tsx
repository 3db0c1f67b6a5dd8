// ApikeysPage lists API keys, and checks whether a key is valid. Other tables of API keys take their columns from here.
import { useId } from 'hono/jsx/dom';
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import { ringFlags } from '../flags/draft.ts';
import { FlagSummary } from '../flags/flag-list.tsx';
import { type NamesById, useAccountUids, useActorNames, useRingNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import type { Chip } from '../parts/arranging.ts';
import type { BulkAction } from '../parts/bulk.tsx';
import { ButtonLink } from '../parts/button.tsx';
import { Field, Proposals } from '../parts/fields.tsx';
import { Finder } from '../parts/finder.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { announce } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useState, useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { countedText } from '../text.ts';
import { KeysUse } from './disable-key.tsx';
import { endIn, isExpiring, stateOf } from './key-change.ts';
import { KeyAccount, KeyName, Maker, StateTag } from './key-fields.tsx';

export function ApikeysPage({ api, keeper, navigate, query }: PageProps) {
  const uids = useAccountUids();
  const names = useActorNames();
  const rings = useRingNames();
  const list = useWholeList((page, signal) => api.listApiKeys(page, { signal }), keeper, 'apikeys');
  // The ring that keys may use, and the account that they belong to, narrow the list besides the search.
  const ring = (query.get('ring') ?? '').trim().toLowerCase();
  const account = query.get('account') ?? '';
  const items = list.items.filter(
    ({ flags, references: { accountId } }) =>
      (ring === '' || ringFlags(flags, ring).length > 0) && (account === '' || uids.get(accountId) === account),
  );
  const to = (change: object): string => hrefTo('apikeys', {}, { ...Object.fromEntries(query), ...change });
  return (
    <>
      <PageHeader
        title="API keys"
        lead="Programs log in with these. Each belongs to an account and may do what its flags allow."
        actions={
          <ButtonLink href={hrefTo('newApikey', {}, { account: account || undefined })} needs="apikey.create">
            New API key
          </ButtonLink>
        }
      />
      {account !== '' && (
        <p data-note>
          Only those of the account {account}. <a href={to({ account: undefined })}>Show all accounts</a>
        </p>
      )}
      <Finder<SafeApiKey>
        {...{ keeper, navigate, query }}
        page="apikeys"
        caption={ring === '' ? 'API keys' : `API keys that may use the keyring ${ring}`}
        label="Search by name, id, flag or owner"
        list={{ ...list, items }}
        columns={apiKeyColumns(uids, names)}
        keyOf={({ keyid }) => keyid}
        nameOf={({ name, keyid }) => (name === '' ? keyid : name)}
        textsOf={(key) => textsOf(key, uids, names)}
        chips={chips}
        compare={compareKeys}
        countOf={(count) => countedText(count, 'API key')}
        actions={bulkActions(api)}
        lookUp={(apikeyid, signal) => api.getApiKey({ apikeyid }, { signal })}
        beside={<RingFilter ring={ring} rings={rings} onChange={(next) => navigate(to({ ring: next }), 'replace')} />}
        empty={ring === '' ? <p>There are no API keys yet.</p> : <p>No key may use {ring}.</p>}
      />
      <ValidateKey api={api} />
    </>
  );
}

interface RingFilterProps {
  readonly ring: string;
  readonly rings: readonly string[];
  readonly onChange: (ring: string | undefined) => void;
}

function RingFilter({ ring, rings, onChange }: RingFilterProps) {
  const id = useId();
  const change = (event: Event): void => onChange((event.target as HTMLInputElement).value.trim() || undefined);
  return (
    <>
      <input
        type="text"
        aria-label="May use the keyring"
        placeholder="For keyring…"
        list={id}
        value={ring}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        data-narrow
        onChange={change}
      />
      <Proposals id={id} texts={rings} />
    </>
  );
}

function textsOf(
  { keyid, name, flags, references, createdBy }: SafeApiKey,
  uids: NamesById,
  names: NamesById,
): string[] {
  const { accountId } = references;
  const granted = Object.keys(flags).filter((flag) => flags[flag] === true);
  const maker = createdBy ?? '';
  return [name, keyid, accountId, uids.get(accountId) ?? '', maker, names.get(maker) ?? '', ...granted];
}

const chips: readonly Chip<SafeApiKey>[] = [
  { id: 'active', label: 'Active', group: 'state', has: (key, now) => stateOf(key, now) === 'active' },
  { id: 'disabled', label: 'Disabled', group: 'state', has: (key, now) => stateOf(key, now) === 'disabled' },
  { id: 'expired', label: 'Expired', group: 'state', has: (key, now) => stateOf(key, now) === 'expired' },
  { id: 'expiring', label: 'Expiring', has: isExpiring },
  { id: 'unused', label: 'Never used', has: ({ lastUsedAt }) => lastUsedAt === null },
];

/** Active ones first, then the newest. */
function compareKeys(one: SafeApiKey, other: SafeApiKey): number {
  const now = Date.now();
  const rank = (key: SafeApiKey): number => Number(stateOf(key, now) !== 'active');
  return rank(one) - rank(other) || other.createdAt.localeCompare(one.createdAt);
}

function bulkActions(api: Client): readonly BulkAction<SafeApiKey>[] {
  const setActive = (apikeyid: string, active: boolean) => api.updateApiKey({ op: 'merge', apikeyid, active });
  return [
    {
      label: 'Disable…',
      needs: 'apikey.update',
      title: (count) => `Disable ${count}?`,
      about: (keys) => <KeysUse keys={keys} />,
      action: 'Disable',
      run: ({ keyid }) => setActive(keyid, false),
      undo: async ({ keyid, active }) => active && setActive(keyid, true),
      done: (count) => `Disabled ${count}.`,
    },
    {
      label: 'Set expiry…',
      needs: 'apikey.update',
      title: (count) => `When should ${count} expire?`,
      about: () => null,
      fields: (
        <Field
          name="expiresAt"
          label="Expires"
          hint="A date in UTC such as 2027-01-31, or an age such as 90d. Leave it empty for never."
        />
      ),
      action: 'Set expiry',
      check: (values) => void expiryIn(values),
      run: ({ keyid }, values) => api.updateApiKey({ op: 'merge', apikeyid: keyid, expiresAt: expiryIn(values) }),
      undo: ({ keyid, expiresAt }) => api.updateApiKey({ op: 'merge', apikeyid: keyid, expiresAt }),
      done: (count) => `The expiry of ${count} is set.`,
    },
    {
      label: 'Delete…',
      needs: 'apikey.delete',
      kind: 'danger',
      title: (count) => `Delete ${count}?`,
      about: (keys) => (
        <>
          <KeysUse keys={keys} />
          <p>
            This cannot be undone. Disabling stops {keys.length === 1 ? 'it' : 'them'} just as well, and can be taken
            back.
          </p>
        </>
      ),
      action: 'Delete',
      run: ({ keyid }) => api.deleteApiKeyById({ keyid }),
      done: (count) => `Deleted ${count}.`,
    },
  ];
}

function expiryIn(values: FormValues): number | null {
  const end = endIn(values.text('expiresAt'), values.firstAt);
  if (end.problem !== undefined) throw new FieldProblems({ expiresAt: end.problem });
  return end.value;
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

function apiKeyColumns(uids: NamesById, names: NamesById): readonly Column<SafeApiKey>[] {
  return [
    {
      title: 'Name',
      kind: 'name',
      cell: (apiKey) => <KeyName apiKey={apiKey} />,
      sort: ({ name, keyid }) => (name === '' ? keyid : name),
    },
    {
      title: 'State',
      cell: (apiKey) => <StateTag apiKey={apiKey} />,
      sort: (key) => stateOf(key, Date.now()),
    },
    {
      title: 'Flags',
      kind: 'long',
      cell: ({ flags }) => <FlagSummary flags={flags} />,
      sort: ({ flags }) => Object.keys(flags).length,
    },
    {
      title: 'Account',
      kind: 'long',
      shownFrom: 'wide',
      cell: (apiKey) => <KeyAccount apiKey={apiKey} uids={uids} />,
      sort: ({ references: { accountId } }) => uids.get(accountId) ?? accountId,
    },
    {
      title: 'Expires',
      shownFrom: 'narrow',
      cell: ({ expiresAt }) => <Ago at={expiresAt} />,
      sort: ({ expiresAt }) => expiresAt,
    },
    {
      title: 'Last used',
      shownFrom: 'medium',
      cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} />,
      sort: ({ lastUsedAt }) => lastUsedAt,
    },
    {
      title: 'Created',
      shownFrom: 'widest',
      cell: ({ createdAt }) => <Ago at={createdAt} />,
      sort: ({ createdAt }) => createdAt,
    },
    {
      title: 'Created by',
      shownFrom: 'widest',
      cell: ({ createdBy }) => <Maker id={createdBy} names={names} isShort />,
      sort: ({ createdBy }) => createdBy && (names.get(createdBy) ?? createdBy),
    },
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
