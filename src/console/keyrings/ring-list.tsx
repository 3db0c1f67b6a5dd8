// RingList lists the rings of one or more kinds, and the deleted ones that can still be restored: the one just deleted,
// which the page's address names, and all of them behind a chip.
import type { Child } from 'hono/jsx/dom';
import { type ConsolePageName, consolePages } from '../../api/console-pages.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { arrangementOf, type Chip, compareTexts } from '../parts/arranging.ts';
import type { BulkAction } from '../parts/bulk.tsx';
import { Button } from '../parts/button.tsx';
import { Finder } from '../parts/finder.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { type List, type LoadPage, useAction, useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago, Day, RingTags } from '../parts/values.tsx';
import { countedText, ringTraits } from '../text.ts';
import { nounOf } from './ring-page.tsx';
import type { ListedRing, RingSource } from './ring-source.ts';

type Row = ListedRing & { readonly source: RingSource };

interface RingListProps extends Pick<PageProps, 'keeper' | 'navigate' | 'query'> {
  readonly page: ConsolePageName;
  readonly sources: readonly RingSource[];
  readonly lead: Child;
  /** Actions of the whole page. */
  readonly actions?: Child;
  /** Between what all rings have and the times. */
  readonly columns: readonly Column<ListedRing>[];
  /** Shown if there are no rings. */
  readonly empty: Child;
}

export function RingList(props: RingListProps) {
  const { page, sources, lead, actions, columns, navigate, query, keeper, empty } = props;
  const showsDeleted = arrangementOf(query).chips.includes('deleted');
  const list = useRings(props, showsDeleted);
  const { title } = consolePages[page];
  const isOneCustody = page === 'managedKeys';
  const restore = useAction((row: Row) => restoreRing(row, navigate));
  const name: Column<Row> = { title: 'Name', kind: 'name', cell: nameCell, sort: ({ name }) => name };
  const times = showsDeleted ? deletedColumns(restore.isBusy, (row) => void restore.start(row)) : timeColumns;
  return (
    <>
      <PageHeader {...{ title, lead, actions }} />
      <JustDeleted {...props} />
      <ActionError error={restore.error} />
      <Finder<Row>
        {...{ page, navigate, query, keeper, list }}
        caption={showsDeleted ? `Deleted ${title.toLowerCase()}` : title}
        label="Search by name or id"
        columns={[
          name,
          ...(sources.length > 1 ? [kindColumn] : []),
          ...(isOneCustody ? [] : [custody]),
          ...columns,
          ...times,
        ]}
        keyOf={({ id }) => id}
        nameOf={({ displayName }) => displayName}
        textsOf={({ displayName, id, type = '', source }) => [displayName, id, type, nounOf(source.kind)]}
        chips={chipsOf(sources)}
        compare={(one, other) => other.createdAt.localeCompare(one.createdAt) || compareTexts(one.name, other.name)}
        countOf={(count) => countedText(count, 'keyring')}
        actions={showsDeleted ? deletedActions : liveActions}
        lookUp={(typed, signal) => lookUp(sources, typed, signal)}
        empty={showsDeleted ? <p>There are none to restore.</p> : empty}
      />
    </>
  );
}

/** The rings of all sources, as one list. */
function useRings({ page, sources, keeper }: RingListProps, showsDeleted: boolean): List<Row> {
  const [first, second] = sources;
  const what = `${page} ${showsDeleted ? 'deleted' : 'live'}`;
  const one = useWholeList(rowsOf(first, showsDeleted), keeper, `${what} 1`);
  const other = useWholeList(rowsOf(second, showsDeleted), keeper, `${what} 2`);
  const both = [one, other];
  return {
    items: both.flatMap(({ items }) => items),
    is: both.find(({ is }) => is !== 'ready')?.is ?? 'ready',
    error: one.error ?? other.error,
    hasMore: one.hasMore || other.hasMore,
    more: () => {
      for (const list of both) if (list.hasMore || list.is === 'failed') list.more();
    },
    again: () => {
      for (const list of both) list.again();
    },
  };
}

function rowsOf(source: RingSource | undefined, showsDeleted: boolean): LoadPage<Row> {
  if (!source) return async () => ({ data: [], pagination: { hasMore: false } });
  const load = showsDeleted ? source.loadDeleted : source.load;
  return async (page, signal) => {
    const { data, pagination } = await load(page, signal);
    return { data: data.map((ring) => ({ ...ring, source })), pagination };
  };
}

async function lookUp(sources: readonly RingSource[], typed: string, signal: AbortSignal): Promise<Row> {
  return Promise.any(sources.map(async (source) => ({ ...(await source.read(typed.toLowerCase(), signal)), source })));
}

function nameCell({ name, displayName, deletedAt, source }: Row): Child {
  if (deletedAt !== undefined) return <span title={displayName}>{displayName}</span>;
  return (
    <a href={hrefTo(source.kind.page, { name })} title={displayName}>
      {displayName}
    </a>
  );
}

const kindColumn: Column<Row> = {
  title: 'Kind',
  cell: ({ source, type }) => (
    <>
      {consolePages[source.kind.page].title}
      {type !== undefined && <span data-from="wide">, {type}</span>}
    </>
  ),
  sort: ({ source, type = '' }) => `${source.kind.page} ${type}`,
};

const custody: Column<Row> = {
  title: 'Custody',
  shownFrom: 'medium',
  cell: ({ custody = '' }) => custody,
  sort: ({ custody = '' }) => custody,
};

/** How a keyring's keys are wrapped. */
export const wrappingColumn: Column<ListedRing> = {
  title: 'Wrapping',
  kind: 'long',
  shownFrom: 'medium',
  cell: ({ custody: _, ...ring }) => (
    <span title={ringTraits(ring).join(', ')}>
      <RingTags of={ring} />
    </span>
  ),
  sort: ({ kem }) => kem ?? null,
};

const timeColumns: readonly Column<Row>[] = [
  { title: 'Changed', cell: ({ updatedAt }) => <Ago at={updatedAt} />, sort: ({ updatedAt }) => updatedAt },
  {
    title: 'Created',
    shownFrom: 'widest',
    cell: ({ createdAt }) => <Ago at={createdAt} />,
    sort: ({ createdAt }) => createdAt,
  },
];

function deletedColumns(isBusy: boolean, onRestore: (row: Row) => void): readonly Column<Row>[] {
  return [
    {
      title: 'Deleted',
      shownFrom: 'medium',
      cell: ({ deletedAt = null }) => <Ago at={deletedAt} />,
      sort: ({ deletedAt = null }) => deletedAt,
    },
    { title: 'Until', cell: ({ restorableUntil = null }) => <Day at={restorableUntil} /> },
    {
      title: 'Restore',
      cell: (row) => (
        <Button
          kind="quiet"
          needs={deleteFlag(row)}
          isBusy={isBusy}
          label={`Restore ${row.displayName}`}
          onClick={() => onRestore(row)}
        >
          Restore
        </Button>
      ),
    },
  ];
}

function chipsOf(sources: readonly RingSource[]): readonly Chip<Row>[] {
  const kinds = sources.map(
    ({ kind }): Chip<Row> => ({
      id: kind.flags,
      label: `${consolePages[kind.page].title}s`,
      group: 'kind',
      has: ({ source }) => source.kind === kind,
    }),
  );
  const deleted: Chip<Row> = { id: 'deleted', label: 'Deleted', has: ({ deletedAt }) => deletedAt !== undefined };
  const hybrid: readonly Chip<Row>[] = [
    { id: 'hybrid', label: 'Hybrid', group: 'kem', has: ({ kem }) => kem === 'mlkem768-x25519' },
    { id: 'x25519', label: 'X25519', group: 'kem', has: ({ kem }) => kem === 'x25519' },
  ];
  const wraps = sources.some(({ kind }) => kind.flags === 'keyring');
  return [...(kinds.length > 1 ? kinds : []), ...(wraps ? hybrid : []), deleted];
}

const liveActions: readonly BulkAction<Row>[] = [
  {
    label: 'Rotate…',
    title: (count) => `Rotate ${count}?`,
    about: () => (
      <p>Each gets a new key for what is encrypted from now on. What was encrypted before stays readable.</p>
    ),
    action: 'Rotate',
    run: ({ name, source }) => source.rotate(name),
    done: (count) => `Rotated ${count}.`,
  },
  {
    label: 'Delete…',
    kind: 'danger',
    title: (count) => `Delete ${count}?`,
    about: () => (
      <p>
        After that, nobody can encrypt with these or decrypt what they encrypted. For 30 days you can restore them; then
        their keys are gone for ever.
      </p>
    ),
    action: 'Delete',
    run: ({ name, source }) => source.remove(name),
    undo: ({ id, source }) => source.restore(id),
    done: (count) => `Deleted ${count}.`,
  },
];

const deletedActions: readonly BulkAction<Row>[] = [
  {
    label: 'Restore…',
    title: (count) => `Restore ${count}?`,
    about: () => <p>They can be used again as before.</p>,
    action: 'Restore',
    run: ({ id, source }) => source.restore(id),
    done: (count) => `Restored ${count}.`,
  },
];

function deleteFlag({ name, source }: Row): string {
  return `${source.kind.flags}.${name}.delete`;
}

async function restoreRing({ id, source }: Pick<Row, 'id' | 'source'>, navigate: PageProps['navigate']): Promise<void> {
  const { ring } = await source.restore(id);
  toast(`The ${nounOf(source.kind)} ${ring.displayName} has been restored.`);
  navigate(hrefTo(source.kind.page, { name: ring.name }));
}

/** Offers to restore a ring just deleted, if the address names one. */
function JustDeleted({ query, sources, navigate }: Pick<RingListProps, 'query' | 'sources' | 'navigate'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const { isBusy, error, start } = useAction(restoreRing);
  const [source] = sources;
  if (id === null || name === null || !source) return null;
  return (
    <div data-note data-tone="warn">
      <p>
        The {nounOf(source.kind)} <strong>{name}</strong> has been deleted. You can restore it for 30 days.
      </p>
      <ActionError error={error} />
      <Button
        kind="quiet"
        needs={`${source.kind.flags}.${name}.delete`}
        isBusy={isBusy}
        onClick={() => void start({ id, source }, navigate)}
      >
        Restore it
      </Button>
    </div>
  );
}
