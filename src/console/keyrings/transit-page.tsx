// TransitPage lists the rings whose keys the service holds. They are created by the software that uses them, or with
// `kms transit`.
import type { TransitRing } from '../../api/transit.ts';
import type { PageProps } from '../page.ts';
import { RingList } from './ring-list.tsx';
import { ringKinds } from './ring-page.tsx';

export function TransitPage({ api, navigate, query }: PageProps) {
  return (
    <RingList<TransitRing>
      {...{ navigate, query }}
      kind={ringKinds.transit}
      lead={
        <>
          The service holds the keys of these rings (custody <code>server</code>), and uses them itself, for software
          that speaks Vault transit. So anyone who has its master key and its database can use them too. Create them
          with that software, or with <code>kms transit</code>.
        </>
      }
      columns={[
        { title: 'Type', cell: ({ type, derived }) => [<code key="type">{type}</code>, derived && ' (derived)'] },
        { title: 'Latest version', kind: 'number', cell: ({ latestVersion }) => latestVersion },
        { title: 'Decrypts from', kind: 'number', cell: ({ minDecryptionVersion }) => minDecryptionVersion },
      ]}
      load={(page, signal) => api.listTransitRings(page, { signal })}
      loadDeleted={(page, signal) => api.listTransitRings({ deleted: true, ...page }, { signal })}
      restore={(id) => api.restoreTransitRing({ id })}
      empty={<p>There are no transit rings.</p>}
    />
  );
}
