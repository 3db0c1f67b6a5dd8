// The way back for a deleted keyring. The API lists none of them, so that it is by the id: offered at once after a deletion, and by hand.

import { KmsError } from '../../errors.ts';
import { hrefTo } from '../address.ts';
import { Button } from '../parts/button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { Field, FieldProblems, Form } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';
import { toast } from '../parts/toast.tsx';
import type { RoomProps } from '../room.ts';
import { troubleText } from '../trouble.ts';

type Props = Pick<RoomProps, 'api' | 'navigate'>;

async function restore({ api, navigate }: Props, id: string): Promise<void> {
  const { ring } = await api.restoreKeyring({ id });
  toast(`The keyring ${ring.displayName} is back.`);
  navigate(hrefTo('keyring', { name: ring.name }));
}

/** Where the address says that a ring was deleted just now. */
export function JustDeleted({ query, ...props }: Pick<RoomProps, 'api' | 'navigate' | 'query'>) {
  const id = query.get('deleted');
  const name = query.get('name');
  const [problem, setProblem] = useState('');
  if (id === null || name === null) return null;
  return (
    <div data-note data-tone="warn">
      <p>
        The keyring <strong>{name}</strong> is deleted. For 30 days it can be brought back, under its id:{' '}
        <Copyable text={id} what="the id" />
      </p>
      {problem !== '' && <p role="alert">{problem}</p>}
      <Button
        kind="quiet"
        needs={`keyring.${name}.delete`}
        onClick={() => {
          restore(props, id).catch((error: unknown) => setProblem(troubleText(error)));
        }}
      >
        Bring it back
      </Button>
    </div>
  );
}

export function RestoreById(props: Props) {
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
          hint="It was shown when the keyring was deleted, and starts with ring_. Within 30 days a keyring comes back with all its keys."
          isRequired
        />
      </Form>
    </details>
  );
}
