// KeyringsPage lists the keyrings, searched by name while one types, and those that were deleted and can still be brought
// back.
import type { KeyRing, ListedKeyRing } from '../../api/keyrings.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, ButtonLink } from '../parts/button.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useAction, useList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';

const columns: readonly Column<KeyRing>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo('keyring', { name })}>{displayName}</a>,
  },
  { title: 'Custody', cell: ({ custody }) => custody },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

export function KeyringsPage({ api, navigate, query }: PageProps) {
  const all = useList((page, signal) => api.listKeyrings(page, { signal }), [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ name }) => [name]);
  return (
    <>
      <PageHeader
        title="Keyrings"
        lead={
          <>
            A keyring holds the keys that data are encrypted with. Its private key, with which they are unwrapped, is
            never kept here.
          </>
        }
        actions={
          <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
            New keyring
          </ButtonLink>
        }
      />
      <JustDeleted {...{ api, navigate, query }} />
      {all.items.length > 0 && <SearchBox label="Search by name" onInput={onInput} />}
      <DataTable
        caption="Keyrings"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={
          sought !== '' ? (
            <p>No keyring has “{sought}” in its name.</p>
          ) : (
            <>
              <p>There is no keyring yet. Data are encrypted with the keys of one.</p>
              <p>
                <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
                  Create the first keyring
                </ButtonLink>
              </p>
            </>
          )
        }
      />
      <Bin {...{ api, navigate }} />
    </>
  );
}

type Props = Pick<PageProps, 'api' | 'navigate'>;

async function restore({ api, navigate }: Props, id: string): Promise<void> {
  const { ring } = await api.restoreKeyring({ id });
  toast(`The keyring ${ring.displayName} is back.`);
  navigate(hrefTo('keyring', { name: ring.name }));
}

/** Where the address says that a ring was deleted just now. */
function JustDeleted({ query, ...props }: Pick<PageProps, 'api' | 'navigate' | 'query'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const { isBusy, error, start } = useAction(restore);
  if (id === null || name === null) return null;
  return (
    <div data-note data-tone="warn">
      <p>
        The keyring <strong>{name}</strong> is deleted. For 30 days it can be brought back.
      </p>
      <ActionError error={error} />
      <Button kind="quiet" needs={`keyring.${name}.delete`} isBusy={isBusy} onClick={() => void start(props, id)}>
        Bring it back
      </Button>
    </div>
  );
}

/** Nobody looks into it each time: it is asked for when it is opened. */
function Bin(props: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details data-panel onToggle={(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}>
      <summary>Deleted keyrings</summary>
      <p data-quiet>A deleted keyring can be brought back for 30 days, with all its keys; then its keys are erased.</p>
      {isOpen && <Deleted {...props} />}
    </details>
  );
}

function Deleted(props: Props) {
  const { api } = props;
  const list = useList((page, signal) => api.listKeyrings({ deleted: true, ...page }, { signal }));
  const { isBusy, error, start } = useAction(restore);
  const columns: readonly Column<ListedKeyRing>[] = [
    { title: 'Name', kind: 'name', cell: ({ displayName }) => displayName },
    { title: 'Deleted', cell: ({ deletedAt = '' }) => <Time at={deletedAt} /> },
    { title: 'Until', cell: ({ restorableUntil = '' }) => <Time at={restorableUntil} /> },
    {
      title: 'Bring back',
      cell: ({ id, name, displayName }) => (
        <Button
          kind="quiet"
          needs={`keyring.${name}.delete`}
          isBusy={isBusy}
          label={`Bring back ${displayName}`}
          onClick={() => void start(props, id)}
        >
          Bring back
        </Button>
      ),
    },
  ];
  return (
    <>
      <ActionError error={error} />
      <DataTable
        caption="Deleted keyrings"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<p>There is none that can be brought back.</p>}
      />
    </>
  );
}
