// NewManagedKey makes a managed key: what it is for decides the types that are offered, and the type its uses.
import type { KeyType } from '../../model/key-types.ts';
import { isAlias, isRingName } from '../../model/names.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, Choice, Field, Select, TextArea } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { aliasRule, type KeyPurpose, keyPurposes, typesFor, usesFor, useText, usualType } from './managed-key-words.ts';

export const nameRule =
  'Letters, digits, dots, dashes and underscores; up to 128 characters, the first a letter or digit.';

export function NewManagedKey({ api, navigate }: Pick<PageProps, 'api' | 'navigate'>) {
  const [purpose, setPurpose] = useState<KeyPurpose>('encrypt');
  const [type, setType] = useState<KeyType>(usualType('encrypt'));
  const { usual, possible } = usesFor(purpose, type) ?? { usual: [], possible: [] };
  const offered = possible.filter((use) => use !== 'export');
  const isOneUse = offered.length === 1 && offered.every((use) => usual.includes(use));
  const types = typesFor(purpose);
  const isDerivable = purpose === 'encrypt' && !type.startsWith('rsa-');

  const inputIn = (values: FormValues) => {
    const name = values.text('name');
    if (!isRingName(name)) throw new FieldProblems({ name: nameRule });
    const aliases = values
      .text('aliases')
      .split(/[\s,]+/)
      .filter((alias) => alias !== '');
    if (!aliases.every(isAlias)) throw new FieldProblems({ aliases: aliasRule });
    const exportable = purpose === 'secret' || values.isOn('exportable');
    const uses = offered.filter((use) => values.isOn(`use-${use}`));
    if (uses.length === 0 && !exportable) {
      throw new FieldProblems({ [`use-${offered[0]}`]: 'Choose at least one use.' });
    }
    return { name, type, uses, aliases, exportable, ...(isDerivable && { derived: values.isOn('derived') }) };
  };

  return (
    <Form
      action="Create the managed key"
      busy="Creating it…"
      needs="key.create"
      onSubmit={async (values) => {
        const { uses, exportable, ...input } = inputIn(values);
        const all = exportable ? [...uses, 'export' as const] : uses;
        const { key } = await api.createManagedKey({ ...input, uses: all, exportable });
        toast(`The managed key ${key.displayName} has been created.`);
        navigate(hrefTo('managedKey', { name: key.name }), 'replace');
      }}
    >
      <Field name="name" label="Name" hint={nameRule} isRequired />
      <Choice
        legend="What it is for"
        name="purpose"
        chosen={purpose}
        onChange={(next) => {
          setPurpose(next);
          setType(usualType(next));
        }}
        options={keyPurposes}
      />
      {types.length > 1 && (
        <Select
          key={`type ${purpose}`}
          name="type"
          label="Type"
          value={type}
          options={types.map((each): [string, string] => [each, each])}
          onChange={(next) => setType(types.find((each) => each === next) ?? type)}
        />
      )}
      {!isOneUse && (
        <fieldset key={`uses ${purpose} ${type}`} data-choices>
          <legend>Uses</legend>
          {offered.map((use) => (
            <Check key={use} name={`use-${use}`} label={useText(use)} isOn={usual.includes(use)} isRequired={false} />
          ))}
          <p data-hint>They cannot be changed later.</p>
        </fieldset>
      )}
      {isOneUse && <input key="only use" type="hidden" name={`use-${offered[0]}`} value="on" />}
      <details>
        <summary>More</summary>
        {purpose !== 'secret' && (
          <Check
            key="exportable"
            name="exportable"
            label="May be exported"
            hint="Who has the flag for it can then take the key out of the service. You can take this away later."
          />
        )}
        {isDerivable && (
          <Check
            key="derived"
            name="derived"
            label="Derive a key for each context"
            hint="Each message then has to come with a context."
          />
        )}
        <TextArea
          name="aliases"
          label="Aliases"
          hint="Other names under which programs find it, such as app/db; one a line."
          isCode
        />
      </details>
    </Form>
  );
}
