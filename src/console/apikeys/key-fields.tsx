// KeyFields are the inputs of an API key other than its flags: its name, expiry and allowed addresses. KeyName,
// KeyAccount and Maker show a key, its account and its creator.
import type { SafeApiKey } from '../../api/apikeys.ts';
import { FieldProblems } from '../error-text.ts';
import type { NamesById } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import { Field, TextArea } from '../parts/fields.tsx';
import type { FormValues } from '../parts/form.tsx';
import { Words } from '../parts/words.tsx';
import { addressesIn, endIn, endText, stateOf } from './key-change.ts';

export function KeyFields({ apiKey }: { readonly apiKey?: SafeApiKey }) {
  return (
    <>
      <Field
        name="name"
        label="Name"
        hint="A name for people, such as that of the program that uses it."
        value={apiKey?.name ?? ''}
      />
      <Field
        name="expiresAt"
        label="Expires"
        hint="A date in UTC such as 2027-01-31 or 2027-01-31 08:00, or an age such as 90d. Leave it empty for none."
        value={endText(apiKey?.expiresAt ?? null)}
      />
      <TextArea
        name="allowedAddresses"
        label="Allowed addresses"
        hint="Addresses and blocks such as 192.0.2.0/24, one per line. Leave it empty to allow any address."
        value={apiKey?.allowedAddresses.join('\n') ?? ''}
        isCode
      />
    </>
  );
}

/** The values of `KeyFields`. */
export function keyIn(values: FormValues) {
  const end = endIn(values.text('expiresAt'), values.firstAt);
  const addresses = addressesIn(values.exactly('allowedAddresses'));
  if (end.problem !== undefined) throw new FieldProblems({ expiresAt: end.problem });
  if (addresses.problem !== undefined) throw new FieldProblems({ allowedAddresses: addresses.problem });
  return { name: values.text('name'), expiresAt: end.value, allowedAddresses: addresses.value };
}

/** A key by its name, or by its id if it has none. */
export function KeyName({ apiKey: { keyid, name } }: { readonly apiKey: Pick<SafeApiKey, 'keyid' | 'name'> }) {
  return (
    <a href={hrefTo('apikey', { id: keyid })} title={name === '' ? keyid : `${name} (${keyid})`}>
      {name === '' ? (
        <code data-any>{keyid}</code>
      ) : (
        <bdi>
          <Words text={name} />
        </bdi>
      )}
    </a>
  );
}

interface KeyAccountProps {
  readonly apiKey: Pick<SafeApiKey, 'references'>;
  readonly uids: NamesById;
}

/** The account of a key by its UID, or by its id if the user may not list accounts. */
export function KeyAccount({ apiKey, uids }: KeyAccountProps) {
  const { accountId } = apiKey.references;
  const uid = uids.get(accountId);
  return (
    <a href={hrefTo('account', { id: accountId })} title={uid ?? accountId}>
      {uid === undefined ? !uids.isAwaited && <code data-any>{accountId}</code> : <Words text={uid} />}
    </a>
  );
}

const tones = { active: 'good', disabled: 'bad', expired: 'bad' } as const;

export function StateTag({ apiKey }: { readonly apiKey: Pick<SafeApiKey, 'active' | 'expiresAt'> }) {
  const state = stateOf(apiKey, Date.now());
  return (
    <span data-tag data-tone={tones[state]}>
      {state}
    </span>
  );
}

interface MakerProps {
  /** Id of the creator: an API key, a user, or `local`. */
  readonly id: string | null;
  /** Known names of users and API keys by their ids. */
  readonly names: NamesById;
  /** For tables. */
  readonly isShort?: boolean;
}

const machine = 'the administrator at the machine';

export function Maker({ id, names, isShort = false }: MakerProps) {
  if (id === null) return <span data-quiet>not known</span>;
  if (id === 'local') return <span title={machine}>{isShort ? 'the administrator' : machine}</span>;
  if (names.isAwaited) return null;
  const name = names.get(id);
  if (id.startsWith('apik_')) return <KeyName apiKey={{ keyid: id, name: name ?? '' }} />;
  if (name === undefined) return <code data-any>{id}</code>;
  return (
    <a href={hrefTo('user', { username: name })} title={name}>
      <bdi>{name}</bdi>
    </a>
  );
}
