// TangPage lists the Tang key pairs with which machines unlock their disks; it creates the next pair and deletes
// rotated ones. The allowed addresses and the listener are options of the service's start.
import type { TangPair } from '../../api/tang.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Confirm, ConfirmByName } from '../parts/dialog.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAction, useList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Time } from '../parts/values.tsx';

export function TangPage({ api }: PageProps) {
  // At most 100, fetched at once.
  const list = useList(async (_page, signal) => {
    const { pairs } = await api.listTangPairs({}, { signal });
    return { data: pairs, pagination: { hasMore: false } };
  });
  const [leaving, setLeaving] = useState<TangPair | undefined>(undefined);
  const hasPair = list.items.length > 0;

  const [isRotating, setRotating] = useState(false);

  const rotate = async () => {
    await api.rotateTangPair({});
    list.again();
    toast(
      hasPair
        ? 'A new pair is advertised. The earlier pairs still unlock what was bound to them.'
        : 'The first pair has been created.',
    );
  };
  const create = useAction(rotate);

  const columns: readonly Column<TangPair>[] = [
    {
      title: 'Thumbprint',
      kind: 'name',
      cell: ({ thumbprint, advertised }) => (
        <>
          <Copyable text={thumbprint} what={`the thumbprint ${thumbprint}`} isLong />{' '}
          {advertised && (
            <span data-tag data-tone="good">
              advertised
            </span>
          )}
        </>
      ),
    },
    { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { title: 'Rotated', cell: ({ rotatedAt }) => rotatedAt !== undefined && <Time at={rotatedAt} /> },
    { title: 'Recoveries', kind: 'number', cell: ({ recoveries }) => recoveries },
    { title: 'Last recovery', cell: (pair) => <LastRecovery of={pair} /> },
    {
      title: 'Actions',
      cell: (pair) =>
        !pair.advertised && (
          <Button
            kind="danger"
            needs="tang.delete"
            label={`Delete… ${pair.thumbprint}`}
            onClick={() => setLeaving(pair)}
          >
            Delete…
          </Button>
        ),
    },
  ];

  return (
    <>
      <PageHeader
        title="Tang key pairs"
        lead={
          <>
            Machines that can reach this service unlock their disks with these, if it was started with{' '}
            <code>--tang-listen</code>. New bindings use the advertised pair: give its thumbprint to <code>clevis</code>
            . Each recovery is in the <a href={hrefTo('activity', {}, { action: 'tang.recover' })}>activity</a>.
          </>
        }
        actions={
          list.is === 'ready' && (
            <Button
              kind="quiet"
              needs="tang.rotate"
              isBusy={create.isBusy}
              onClick={hasPair ? () => setRotating(true) : create.start}
            >
              {hasPair ? 'Rotate…' : 'Create the first pair'}
            </Button>
          )
        }
      />
      <ActionError error={create.error} />
      <DataTable
        caption="Tang key pairs"
        columns={columns}
        list={list}
        keyOf={({ thumbprint }) => thumbprint}
        empty={<p>There are no Tang key pairs yet. The first one is also created when a machine asks for one.</p>}
      />
      {isRotating && (
        <Confirm
          title="Rotate the Tang key pair?"
          action="Rotate the key pair"
          busy="Rotating…"
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            await rotate();
            setRotating(false);
          }}
        >
          <p>
            New bindings get a new pair. Disks that are bound to an earlier one still unlock; bind them again before you
            delete that pair.
          </p>
        </Confirm>
      )}
      {leaving && (
        <ConfirmByName
          title="Delete this Tang key pair?"
          name={leaving.thumbprint}
          action="Delete the key pair"
          busy="Deleting it…"
          onClose={() => setLeaving(undefined)}
          onConfirm={async () => {
            await api.deleteTangPair({ thumbprint: leaving.thumbprint });
            setLeaving(undefined);
            list.again();
            toast('The key pair has been deleted.');
          }}
        >
          <p>
            It is gone for good. This service will never again unlock what is bound only to it: bind those machines to
            the advertised pair first. The last recovery with it: <LastRecovery of={leaving} />.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

function LastRecovery({ of: { recoveredAt } }: { readonly of: TangPair }) {
  return recoveredAt === undefined ? <span data-quiet>never</span> : <Time at={recoveredAt} />;
}
