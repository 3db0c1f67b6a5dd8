// KeyringsPage lists the keyrings, searched by name while one types, and brings back those that were deleted. The API
// lists none of these, so that it is by the id: offered at once after a deletion, and by hand.
import type { KeyRing } from '../../api/keyrings.ts';
import { KmsError } from '../../errors.ts';
import { errorText, FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, ButtonLink } from '../parts/button.tsx';
import { Field } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { SearchBox, useNarrowed } from '../parts/search.tsx';
import { useAction, useList } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Time } from '../parts/values.tsx';

const columns: readonly Column<KeyRing>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ name, displayName }) => <a href={hrefTo('keyring', { name })}>{displayName}</a>,
  },
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
                  Make the first keyring
                </ButtonLink>
              </p>
            </>
          )
        }
      />
      <RestoreById {...{ api, navigate }} />
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
        The keyring <strong>{name}</strong> is deleted. For 30 days it can be brought back, under its id:{' '}
        <Copyable text={id} what="the id" />
      </p>
      {error !== undefined && <p role="alert">{errorText(error)}</p>}
      <Button kind="quiet" needs={`keyring.${name}.delete`} isBusy={isBusy} onClick={() => void start(props, id)}>
        Bring it back
      </Button>
    </div>
  );
}

function RestoreById(props: Props) {
  return (
    <details data-panel>
      <summary>Bring back a deleted keyring</summary>
      <Form
        action="Bring it back"
        busy="Bringing it back…"
        onSubmit={async (values) => {
          try {
            await restore(props, values.text('id'));
          } catch (error) {
            if (!(error instanceof KmsError) || error.code !== 'not-found') throw error;
            throw new FieldProblems({ id: 'Nothing can be brought back under this id.' });
          }
        }}
      >
        <Field
          name="id"
          label="Id of the keyring"
          hint={
            <>
              It was shown when the keyring was deleted, and starts with ring_. Within 30 days a keyring comes back with
              all its keys.
            </>
          }
          isRequired
        />
      </Form>
    </details>
  );
}
