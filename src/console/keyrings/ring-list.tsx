// RingList lists the rings of one kind, and the deleted ones that can still be restored: the one just deleted,
// which the page's address names, and all of them behind a chip.
import type { Child } from 'hono/jsx/dom';
import { type ConsolePageName, consolePages } from '../../api/console-pages.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { arrangementOf, type Chip, compareTexts } from '../parts/arranging.ts';
import { Button } from '../parts/button.tsx';
import { Finder } from '../parts/finder.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { type List, type LoadPage, useAction, useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago, Day, RingTags } from '../parts/values.tsx';
import { Words } from '../parts/words.tsx';
import { countedText, ringTraits } from '../text.ts';
import { deletion, type Row, restoration, rotation } from './ring-bulk.tsx';
import { nounOf, ringKinds } from './ring-page.tsx';
import type { ListedRing, RingSource } from './ring-source.ts';

interface RingListProps extends Pick<PageProps, 'keeper' | 'navigate' | 'query'> {
  readonly page: ConsolePageName;
  readonly source: RingSource;
  readonly lead: Child;
  /** Actions of the whole page. */
  readonly actions?: Child;
  /** Between what all rings have and the times. */
  readonly columns: readonly Column<ListedRing>[];
  /** Besides the one for deleted rings. */
  readonly chips: readonly Chip<ListedRing>[];
  /** Shown if there are no rings. */
  readonly empty: Child;
}

export function RingList(props: RingListProps) {
  const { page, source, lead, actions, columns, chips, navigate, query, keeper, empty } = props;
  const noun = nounOf(source.kind);
  const showsDeleted = arrangementOf(query).chips.includes('deleted');
  const list = useRings(props, showsDeleted);
  const { title } = consolePages[page];
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
        label={`Search by name${source.kind === ringKinds.managedKey ? ', id or tag' : ' or id'}`}
        columns={[name, ...columns, ...times]}
        keyOf={({ id }) => id}
        nameOf={({ displayName }) => displayName}
        textsOf={textsOf}
        chips={[...chips, deletedChip]}
        compare={(one, other) => other.createdAt.localeCompare(one.createdAt) || compareTexts(one.name, other.name)}
        countOf={(count) => countedText(count, noun)}
        actions={showsDeleted ? [restoration] : [rotation, deletion]}
        lookUp={(typed, signal) => lookUp(source, typed, signal)}
        empty={showsDeleted ? <p>There are none to restore.</p> : empty}
      />
    </>
  );
}

function useRings({ page, source, keeper }: RingListProps, showsDeleted: boolean): List<Row> {
  return useWholeList(rowsOf(source, showsDeleted), keeper, `${page} ${showsDeleted ? 'deleted' : 'live'}`);
}

function rowsOf(source: RingSource, showsDeleted: boolean): LoadPage<Row> {
  const load = showsDeleted ? source.loadDeleted : source.load;
  return async (page, signal) => {
    const { data, pagination } = await load(page, signal);
    return { data: data.map((ring) => ({ ...ring, source })), pagination };
  };
}

async function lookUp(source: RingSource, typed: string, signal: AbortSignal): Promise<Row> {
  return { ...(await source.read(typed.toLowerCase(), signal)), source };
}

/** Texts that are searched; tags as one types them for the command, `team=payments`. */
function textsOf({ displayName, id, type = '', tags = {} }: Row): readonly string[] {
  return [displayName, id, type, ...Object.entries(tags).map(([tag, text]) => `${tag}=${text}`)];
}

function nameCell({ name, displayName, deletedAt, source }: Row): Child {
  if (deletedAt !== undefined) return <span title={displayName}>{displayName}</span>;
  return (
    <a href={hrefTo(source.kind.page, { name })} title={displayName}>
      <Words text={displayName} />
    </a>
  );
}

/** The side that can use a keyring's keys. */
export const custodyColumn: Column<ListedRing> = {
  title: 'Custody',
  shownFrom: 'medium',
  cell: ({ custody = '' }) => custody,
  sort: ({ custody = '' }) => custody,
};

/** How a keyring's keys are wrapped. */
export const wrappingColumn: Column<ListedRing> = {
  title: 'Wrapping',
  kind: 'long',

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

const deletedChip: Chip<Row> = { id: 'deleted', label: 'Deleted', has: ({ deletedAt }) => deletedAt !== undefined };

export const kemChips: readonly Chip<ListedRing>[] = [
  { id: 'hybrid', label: 'Hybrid', group: 'kem', has: ({ kem }) => kem === 'mlkem768-x25519' },
  { id: 'x25519', label: 'X25519', group: 'kem', has: ({ kem }) => kem === 'x25519' },
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
function JustDeleted({ query, source, navigate }: Pick<RingListProps, 'query' | 'source' | 'navigate'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const { isBusy, error, start } = useAction(restoreRing);
  if (id === null || name === null) return null;
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
