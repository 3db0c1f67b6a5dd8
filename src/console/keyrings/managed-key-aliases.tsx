// The aliases of a managed key: other names under which programs find it.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { isAlias } from '../../model/names.ts';
import { FieldProblems } from '../error-text.ts';
import { Button } from '../parts/button.tsx';
import { Field } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';

interface AliasesProps {
  readonly api: Client;
  readonly ring: ManagedKey;
  readonly onChanged: (key: ManagedKey) => void;
}

export const aliasRule =
  'Letters, digits, dots, dashes, underscores and slashes; up to 128 characters, the first a letter or digit.';

export function ManagedKeyAliases({ api, ring, onChanged }: AliasesProps) {
  const { name, aliases } = ring;
  const [added, setAdded] = useState(0);
  const needs = `key.${name}.config`;
  const give = async (alias: string): Promise<void> => {
    onChanged((await api.addManagedKeyAlias({ key: name, alias })).key);
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
          const alias = values.text('alias');
          if (!isAlias(alias)) throw new FieldProblems({ alias: aliasRule });
          await give(alias);
          setAdded(added + 1);
          toast(`It is also called ${alias.toLowerCase()} now.`);
        }}
      >
        <Field
          name="alias"
          label="New alias"
          hint="Such as app/db. If another key has it, it moves to this one."
          isRequired
        />
      </Form>
    </section>
  );
}
