// RingList lists all rings of a kind, with a search box, and the deleted ones that can still be restored: the one just
// deleted, which the page's address names, and a list of all.
import type { Child } from 'hono/jsx/dom';
import { consolePages } from '../../api/console-pages.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { type LoadPage, useAction, useList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Day, RingTags, Time } from '../parts/values.tsx';
import type { RingTraits } from '../text.ts';
import { nounOf, type RingKind } from './ring-page.tsx';

interface ListedRing extends RingTraits {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly createdAt: string;
  readonly deletedAt?: string;
  readonly restorableUntil?: string;
}

interface RingListProps<Ring extends ListedRing> extends Pick<PageProps, 'navigate' | 'query'> {
  readonly kind: RingKind;
  readonly lead: Child;
  /** Actions of the whole page. */
  readonly actions?: Child;
  /** Between the name and the creation time. */
  readonly columns: readonly Column<Ring>[];
  readonly load: LoadPage<Ring>;
  readonly loadDeleted: LoadPage<Ring>;
  readonly restore: (id: string) => Promise<{ readonly ring: ListedRing }>;
  /** Shown if there are no rings. */
  readonly empty: Child;
}

type DeletedProps = Pick<RingListProps<ListedRing>, 'kind' | 'navigate' | 'loadDeleted' | 'restore'>;

export function RingList<Ring extends ListedRing>(props: RingListProps<Ring>) {
  const { kind, lead, actions, columns, load, query, empty } = props;
  const all = useList(load, [], 500);
  const { sought, list, onInput } = useNarrowed(all, ({ name }) => [name]);
  const { title } = consolePages[kind.list];
  const name: Column<Ring> = {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo(kind.page, { name })}>{displayName}</a>,
  };
  const created: Column<Ring> = { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> };
  return (
    <>
      <PageHeader {...{ title, lead, actions }} />
      <JustDeleted {...props} query={query} />
      {all.items.length > 0 && <SearchBox label="Search by name" onInput={onInput} />}
      <DataTable
        caption={title}
        columns={[name, ...traitColumns(kind), ...columns, created]}
        list={list}
        keyOf={({ id }) => id}
        empty={sought === '' ? empty : <p>{`No ${nounOf(kind)} has “${sought}” in its name.`}</p>}
      />
      <Bin {...props} />
    </>
  );
}

function traitColumns({ flags }: RingKind): readonly Column<ListedRing>[] {
  const custody: Column<ListedRing> = { title: 'Custody', cell: ({ custody = '' }) => custody };
  const wrapping: Column<ListedRing> = {
    title: 'Wrapping',
    cell: ({ custody: _, ...ring }) => <RingTags of={ring} />,
  };
  return flags === 'keyring' ? [custody, wrapping] : [custody];
}

async function restoreRing({ kind, navigate, restore }: DeletedProps, id: string): Promise<void> {
  const { ring } = await restore(id);
  toast(`The ${nounOf(kind)} ${ring.displayName} has been restored.`);
  navigate(hrefTo(kind.page, { name: ring.name }));
}

/** Offers to restore a ring just deleted, if the address names one. */
function JustDeleted({ query, ...rings }: DeletedProps & Pick<PageProps, 'query'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const { isBusy, error, start } = useAction(restoreRing);
  if (id === null || name === null) return null;
  return (
    <div data-note data-tone="warn">
      <p>
        The {nounOf(rings.kind)} <strong>{name}</strong> has been deleted. You can restore it for 30 days.
      </p>
      <ActionError error={error} />
      <Button
        kind="quiet"
        needs={`${rings.kind.flags}.${name}.delete`}
        isBusy={isBusy}
        onClick={() => void start(rings, id)}
      >
        Restore it
      </Button>
    </div>
  );
}

/** Deleted rings; fetched only when opened, since people rarely look at them. */
function Bin(rings: DeletedProps) {
  const [isOpen, setOpen] = useState(false);
  const noun = nounOf(rings.kind);
  return (
    <details data-panel onToggle={(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}>
      <summary>Deleted {noun}s</summary>
      <p data-quiet>A deleted {noun} can be restored for 30 days, with all its keys; then its keys are erased.</p>
      {isOpen && <Deleted {...rings} />}
    </details>
  );
}

function Deleted(rings: DeletedProps) {
  const list = useList(rings.loadDeleted);
  const { isBusy, error, start } = useAction(restoreRing);
  const columns: readonly Column<ListedRing>[] = [
    { title: 'Name', kind: 'name', cell: ({ displayName }) => displayName },
    ...traitColumns(rings.kind),
    { title: 'Deleted', cell: ({ deletedAt = '' }) => <Day at={deletedAt} /> },
    { title: 'Until', cell: ({ restorableUntil = '' }) => <Day at={restorableUntil} /> },
    {
      title: 'Restore',
      cell: ({ id, name, displayName }) => (
        <Button
          kind="quiet"
          needs={`${rings.kind.flags}.${name}.delete`}
          isBusy={isBusy}
          label={`Restore ${displayName}`}
          onClick={() => void start(rings, id)}
        >
          {' '}
          Restore{' '}
        </Button>
      ),
    },
  ];
  return (
    <>
      <ActionError error={error} />
      <DataTable
        caption={`Deleted ${nounOf(rings.kind)}s`}
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<p>There are none to restore.</p>}
      />
    </>
  );
}
