// The aliases of a managed key: other names under which programs find it.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { isAlias } from '../../model/names.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { Button } from '../parts/button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';
import { aliasRule } from './managed-key-words.ts';

interface AliasesProps {
  readonly api: Client;
  readonly ring: ManagedKey;
  readonly onChanged: (key: ManagedKey) => void;
}

/** An alias that another key has, or may have if the user is not allowed to see that. */
interface Taken {
  readonly alias: string;
  readonly holder: ManagedKey | undefined;
}

/** Undefined if no other key has the alias. */
async function takenBy(api: Client, alias: string, { id }: ManagedKey): Promise<Taken | undefined> {
  try {
    const { key: holder } = await api.getManagedKey({ key: alias });
    const hasIt = holder.aliases.some((each) => each.toLowerCase() === alias.toLowerCase());
    return holder.id !== id && hasIt ? { alias, holder } : undefined;
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    if (error.code === 'not-found') return undefined;
    if (error.code === 'forbidden') return { alias, holder: undefined };
    throw error;
  }
}

export function ManagedKeyAliases({ api, ring, onChanged }: AliasesProps) {
  const { name, aliases } = ring;
  const [added, setAdded] = useState(0);
  const [taken, setTaken] = useState<Taken | undefined>(undefined);
  const needs = `key.${name}.config`;
  const give = async (alias: string): Promise<void> => {
    onChanged((await api.addManagedKeyAlias({ key: name, alias })).key);
  };
  const add = async (alias: string): Promise<void> => {
    await give(alias);
    setTaken(undefined);
    setAdded(added + 1);
    toast(`It is also called ${alias} now.`);
  };
  const remove = useAction(async (alias: string) => {
    onChanged((await api.removeManagedKeyAlias({ key: name, alias })).key);
    toast(`It is no longer called ${alias}.`, () => give(alias));
  });
  return (
    <section data-panel>
      <h2>Aliases</h2>
      <p data-quiet>Programs find the key under these names too. Flags name it by its own name alone.</p>
      {aliases.length > 0 && (
        <ul key="list" data-plain>
          {aliases.map((alias) => (
            <li key={alias}>
              <code data-any>{alias}</code>{' '}
              <Button
                kind="quiet"
                needs={needs}
                isBusy={remove.isBusy}
                label={`Remove the alias ${alias}`}
                onClick={() => void remove.start(alias)}
              >
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      <ActionError error={remove.error} />
      <Form
        key={`add ${added}`}
        action="Add the alias"
        busy="Adding it…"
        needs={needs}
        onSubmit={async (values) => {
          const alias = values.text('alias').toLowerCase();
          if (!isAlias(alias)) throw new FieldProblems({ alias: aliasRule });
          const other = await takenBy(api, alias, ring);
          if (other) setTaken(other);
          else await add(alias);
        }}
      >
        <Field
          name="alias"
          label="New alias"
          hint="Such as app/db. If another key has it, you are asked first."
          isRequired
        />
      </Form>
      {taken && (
        <Confirm
          key="taken"
          title={`Move the alias ${taken.alias}?`}
          action="Move the alias"
          busy="Moving it…"
          onClose={() => setTaken(undefined)}
          onConfirm={() => add(taken.alias)}
        >
          <WhatMoves {...{ ring }} {...taken} />
        </Confirm>
      )}
    </section>
  );
}

function WhatMoves({ alias, holder, ring }: Taken & Pick<AliasesProps, 'ring'>) {
  if (!holder) {
    return (
      <p key="unknown">
        You are not allowed to see whether another key is called <code data-any>{alias}</code>. If one is, programs that
        use this alias get {ring.displayName} instead from now on.
      </p>
    );
  }
  return (
    <p key="known">
      <code data-any>{alias}</code> is an alias of{' '}
      <a href={hrefTo('managedKey', { name: holder.name })}>{holder.displayName}</a>. Programs that use it get{' '}
      {ring.displayName} instead from now on.
    </p>
  );
}
