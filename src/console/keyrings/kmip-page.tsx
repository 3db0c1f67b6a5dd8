// KmipPage lists the objects that clients of KMIP have: what they are, their states, whose they are, and who got their
// values last. Each is a managed key, whose page says more.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { kmipTypes } from '../../model/kmip-types.ts';
import { Actor } from '../activity/record-parts.tsx';
import { useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { type Chip, compareTexts } from '../parts/arranging.ts';
import { Finder } from '../parts/finder.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { Words } from '../parts/words.tsx';
import { countedText, upperFirst } from '../text.ts';
import { StateTag } from './managed-key-parts.tsx';
import { kmipTypeText } from './managed-key-words.ts';

const typeChips = Object.values(kmipTypes).map((type): Chip<ManagedKey> => {
  const text = kmipTypeText(type);
  return {
    id: type,
    label: upperFirst(text),
    group: 'type',
    has: ({ kmip }) => kmip?.type === type,
  };
});
const unfetched: Chip<ManagedKey> = {
  id: 'unfetched',
  label: 'Never fetched',
  has: ({ kmip }) => kmip?.lastGet === undefined,
};

export function KmipPage({ api, keeper, navigate, query }: PageProps) {
  const names = useActorNames();
  // Those that clients destroyed are shown for as long as they can be restored.
  const list = useWholeList(
    (page, signal) => api.listManagedKeys({ kmip: true, pending: true, ...page }, { signal }),
    keeper,
    'kmip',
  );
  return (
    <>
      <PageHeader
        title="KMIP objects"
        lead={
          <>
            Databases, storage and backup software keep these here, if the service was started with{' '}
            <code>--kmip-listen</code>. Each is a managed key. All that was done with them is in the{' '}
            <a href={hrefTo('activity', {}, { action: 'key.export' })}>activity</a>.
          </>
        }
      />
      <Finder<ManagedKey>
        {...{ page: 'kmip', navigate, query, keeper, list }}
        caption="KMIP objects"
        label="Search by name, id or client"
        columns={columnsOf(names)}
        keyOf={({ id }) => id}
        nameOf={nameOf}
        textsOf={(key) => textsOf(key, names)}
        chips={[...typeChips, unfetched]}
        compare={(one, other) => other.createdAt.localeCompare(one.createdAt) || compareTexts(one.name, other.name)}
        countOf={(count) => countedText(count, 'object')}
        empty={<p>No client of KMIP has an object here.</p>}
      />
    </>
  );
}

function nameOf({ name, kmip }: ManagedKey): string {
  return kmip?.names[0] ?? name;
}

function textsOf({ id, name, type, kmip }: ManagedKey, names: ReadonlyMap<string, string>): readonly string[] {
  const { owner = '', lastGet } = kmip ?? {};
  const people = [owner, lastGet?.caller ?? ''].flatMap((who) => [who, names.get(who) ?? '']);
  return [id, name, type, ...(kmip?.names ?? []), ...people];
}

function columnsOf(names: ReadonlyMap<string, string>): readonly Column<ManagedKey>[] {
  return [
    { title: 'Name', kind: 'name', cell: (key) => <NameCell of={key} />, sort: nameOf },
    {
      title: 'Type',
      cell: ({ kmip, type }) => [
        <span key="kind">{kmip && kmipTypeText(kmip.type)}</span>,
        ' ',
        <code key="type">{type}</code>,
      ],
      sort: ({ kmip }) => kmip?.type ?? '',
    },
    { title: 'State', cell: ({ state }) => <StateTag state={state} />, sort: ({ state }) => state },
    {
      title: 'Client',
      kind: 'long',
      shownFrom: 'narrow',
      cell: ({ kmip }) => kmip?.owner !== undefined && <Actor keyid={kmip.owner} names={names} />,
      sort: ({ kmip }) => names.get(kmip?.owner ?? '') ?? kmip?.owner ?? '',
    },
    {
      title: 'Last fetched',
      kind: 'long',
      cell: ({ kmip }) => <LastGet of={kmip?.lastGet} names={names} />,
      sort: ({ kmip }) => kmip?.lastGet?.at ?? null,
    },
  ];
}

function NameCell({ of }: { readonly of: ManagedKey }) {
  const name = nameOf(of);
  if (of.deletedAt !== undefined) return <span title={of.name}>{name}</span>;
  return (
    <a href={hrefTo('managedKey', { name: of.name })} title={of.name}>
      <Words text={name} />
    </a>
  );
}

interface LastGetProps {
  readonly of: NonNullable<ManagedKey['kmip']>['lastGet'];
  readonly names: ReadonlyMap<string, string>;
}

function LastGet({ of, names }: LastGetProps) {
  if (of === undefined) return <span data-quiet>never</span>;
  return (
    <>
      <Ago at={of.at} /> <Actor keyid={of.caller} names={names} />
    </>
  );
}
