// Which API keys are listed: all, those of an account, or those that may use a ring.
import { useId } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { hrefTo } from '../address.ts';
import { Check, Field, Form } from '../parts/form.tsx';
import { useAccountUids, useRingNames } from './known-names.ts';

export interface KeyFilter {
  /** An account's UID. */
  readonly account: string;
  /** A ring's name. */
  readonly ring: string;
  /** Also those that a wildcard lets in. */
  readonly wildcard: boolean;
}

export function filterOfQuery(query: URLSearchParams): KeyFilter {
  return {
    account: query.get('account') ?? '',
    ring: query.get('ring') ?? '',
    wildcard: query.get('wildcard') === 'yes',
  };
}

export interface KeyFilterFormProps {
  readonly api: Client;
  readonly filter: KeyFilter;
  readonly navigate: (href: string) => void;
}

export function KeyFilterForm({ api, filter, navigate }: KeyFilterFormProps) {
  const id = useId();
  const uids = useAccountUids(api);
  const rings = useRingNames(api);
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
        <datalist id={`${id}-uids`}>
          {uids.map((uid) => (
            <option key={uid} value={uid} />
          ))}
        </datalist>
        <datalist id={`${id}-rings`}>
          {rings.map((ring) => (
            <option key={ring} value={ring} />
          ))}
        </datalist>
        <div data-columns>
          <Field name="account" label="Of the account with the UID" value={filter.account} list={`${id}-uids`} />
          <Field name="ring" label="Or that may use the ring" value={filter.ring} list={`${id}-rings`} />
          <Field name="keyid" label="Or the key with the id" />
        </div>
        <Check name="wildcard" label="With the ring, also keys that a wildcard lets in" isOn={filter.wildcard} />
      </Form>
    </section>
  );
}
