// ManagedKeysPage lists the rings whose keys the service holds. They are created here, by the software that uses them,
// or with `kms key`.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { RingList } from './ring-list.tsx';
import { managedKeySource } from './ring-source.ts';

export function ManagedKeysPage({ api, keeper, navigate, query }: PageProps) {
  return (
    <RingList
      {...{ keeper, navigate, query }}
      page="managedKeys"
      sources={[managedKeySource(api)]}
      lead={
        <>
          The service holds the keys of these rings (custody <code>server</code>), and uses them itself, for software
          that speaks Vault transit. So anyone who has its master key and its database can use them too.
        </>
      }
      actions={
        <ButtonLink href={hrefTo('newKeyring', {}, { kind: 'key' })} needs="key.create">
          New managed key
        </ButtonLink>
      }
      columns={[
        {
          title: 'Type',
          cell: ({ type, derived }) => [
            <code key="type">{type}</code>,
            derived && (
              <span key="derived" data-from="wide">
                {' (derived)'}
              </span>
            ),
          ],
          sort: ({ type = '' }) => type,
        },
        {
          title: 'Version',
          kind: 'number',
          cell: ({ latestVersion }) => latestVersion,
          sort: ({ latestVersion = 0 }) => latestVersion,
        },
        {
          title: 'Decrypts from',
          kind: 'number',
          shownFrom: 'wide',
          cell: ({ minDecryptionVersion }) => minDecryptionVersion,
          sort: ({ minDecryptionVersion = 0 }) => minDecryptionVersion,
        },
      ]}
      empty={<p>There are no managed keys.</p>}
    />
  );
}
