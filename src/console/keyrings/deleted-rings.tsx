// Deleted rings, of the appliance's or of clients, that can still be brought back: the one that was deleted just now, as the
// page's address says, and all of them.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { type LoadPage, useAction, useList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';

interface DeletedRing {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly deletedAt?: string;
  readonly restorableUntil?: string;
}

/** A kind of ring, and how its deleted ones are had. */
export interface DeletedRings extends Pick<PageProps, 'navigate'> {
  readonly noun: string;
  /** What its permission flags begin with. */
  readonly flags: 'keyring' | 'transit';
  readonly page: 'keyring' | 'transitRing';
  readonly list: LoadPage<DeletedRing>;
  readonly restore: (id: string) => Promise<{ readonly ring: DeletedRing }>;
}

async function bringBack({ noun, page, navigate, restore }: DeletedRings, id: string): Promise<void> {
  const { ring } = await restore(id);
  toast(`The ${noun} ${ring.displayName} is back.`);
  navigate(hrefTo(page, { name: ring.name }));
}

/** Where the address says that a ring was deleted just now. */
export function JustDeleted({ query, ...rings }: DeletedRings & Pick<PageProps, 'query'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const { isBusy, error, start } = useAction(bringBack);
  if (id === null || name === null) return null;
  return (
    <div data-note data-tone="warn">
      <p>
        The {rings.noun} <strong>{name}</strong> is deleted. For 30 days it can be brought back.
      </p>
      <ActionError error={error} />
      <Button
        kind="quiet"
        needs={`${rings.flags}.${name}.delete`}
        isBusy={isBusy}
        onClick={() => void start(rings, id)}
      >
        Bring it back
      </Button>
    </div>
  );
}

/** Nobody looks into it each time: it is asked for when it is opened. */
export function Bin(rings: DeletedRings) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details data-panel onToggle={(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}>
      <summary>Deleted {rings.noun}s</summary>
      <p data-quiet>
        A deleted {rings.noun} can be brought back for 30 days, with all its keys; then its keys are erased.
      </p>
      {isOpen && <Deleted {...rings} />}
    </details>
  );
}

function Deleted(rings: DeletedRings) {
  const list = useList(rings.list);
  const { isBusy, error, start } = useAction(bringBack);
  const columns: readonly Column<DeletedRing>[] = [
    { title: 'Name', kind: 'name', cell: ({ displayName }) => displayName },
    { title: 'Deleted', cell: ({ deletedAt = '' }) => <Time at={deletedAt} /> },
    { title: 'Until', cell: ({ restorableUntil = '' }) => <Time at={restorableUntil} /> },
    {
      title: 'Bring back',
      cell: ({ id, name, displayName }) => (
        <Button
          kind="quiet"
          needs={`${rings.flags}.${name}.delete`}
          isBusy={isBusy}
          label={`Bring back ${displayName}`}
          onClick={() => void start(rings, id)}
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
        caption={`Deleted ${rings.noun}s`}
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<p>There is none that can be brought back.</p>}
      />
    </>
  );
}
