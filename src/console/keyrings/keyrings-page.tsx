// KeyringsPage lists the keyrings.

import type { KeyRing } from '../../api/keyrings.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { Time } from '../parts/values.tsx';
import { RingList } from './ring-list.tsx';
import { ringKinds } from './ring-page.tsx';

export function KeyringsPage({ api, navigate, query }: PageProps) {
  return (
    <RingList<KeyRing>
      {...{ navigate, query }}
      kind={ringKinds.keyring}
      lead={
        <>
          A keyring holds the keys that data is encrypted with. Its private key, which unwraps them, is never kept here.
        </>
      }
      actions={
        <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
          New keyring
        </ButtonLink>
      }
      columns={[{ title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> }]}
      load={(page, signal) => api.listKeyrings(page, { signal })}
      loadDeleted={(page, signal) => api.listKeyrings({ deleted: true, ...page }, { signal })}
      restore={(id) => api.restoreKeyring({ id })}
      empty={
        <>
          <p>There are no keyrings yet. Data is encrypted with the keys of a keyring.</p>
          <p>
            <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
              Create the first keyring
            </ButtonLink>
          </p>
        </>
      }
    />
  );
}
