// ManagedKeysPage lists the keys that the service holds. They are created here, by the software that uses them, or with
// `kms key`.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import type { Chip } from '../parts/arranging.ts';
import { ButtonLink } from '../parts/button.tsx';
import { upperFirst } from '../text.ts';
import { StateTag, UseTags } from './managed-key-parts.tsx';
import { stateWords, useText } from './managed-key-words.ts';
import { RingList } from './ring-list.tsx';
import { type ListedRing, managedKeySource } from './ring-source.ts';

/** States that are looked for; deleted keys have a list of their own. */
const chipStates = ['active', 'pre-active', 'suspended', 'deactivated', 'compromised'] as const;
const stateChips = chipStates.map((wanted): Chip<ListedRing> => {
  const { label } = stateWords(wanted);
  return {
    id: wanted,
    label: upperFirst(label),
    group: 'state',
    has: ({ state }) => state === wanted,
  };
});

export function ManagedKeysPage({ api, keeper, navigate, query }: PageProps) {
  return (
    <RingList
      {...{ keeper, navigate, query }}
      page="managedKeys"
      source={managedKeySource(api)}
      chips={stateChips}
      lead={
        <>
          The service holds these keys (custody <code>server</code>) and works with them, for software that cannot do
          that itself. So anyone who has its master key and its database can use them too.
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
              <span key="derived" data-from="widest">
                {' (derived)'}
              </span>
            ),
          ],
          sort: ({ type = '' }) => type,
        },
        {
          title: 'State',
          cell: ({ state }) => state && <StateTag state={state} />,
          sort: ({ state = '' }) => state,
        },
        {
          title: 'Version',
          kind: 'number',
          shownFrom: 'wide',
          cell: ({ primaryVersion }) => primaryVersion ?? <span data-quiet>none</span>,
          sort: ({ primaryVersion = 0 }) => primaryVersion,
        },
        {
          title: 'Uses',
          kind: 'long',
          shownFrom: 'medium',
          cell: ({ uses = [] }) => (
            <span title={uses.map(useText).join(', ')}>
              <UseTags uses={uses} />
            </span>
          ),
        },
      ]}
      empty={<p>There are no managed keys.</p>}
    />
  );
}
