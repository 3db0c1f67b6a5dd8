// ChangeKey changes an API key in one of three ways, and shows the effect before anything is sent.
import { useEffect, useId, useRef } from 'hono/jsx/dom';
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client, InputOf } from '../../client/client.ts';
import { changedFlags } from '../../model/flags.ts';
import { type ChangeOp, changedObject } from '../../model/json.ts';
import { FieldProblems } from '../error-text.ts';
import { draftOf, draftProblems, flagsOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { useNamesByResource } from '../known-names.ts';
import { CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice, Field, JsonField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { useState } from '../parts/state.ts';
import { type Difference, differences, operations } from './key-change.ts';

interface ChangeKeyProps {
  readonly api: Client;
  readonly apiKey: SafeApiKey;
  /** Flags of the user who makes the change. */
  readonly mine: Readonly<Record<string, unknown>>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

export function ChangeKey({ api, apiKey, mine, onChanged, onClose }: ChangeKeyProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const names = useNamesByResource();
  const [operation, setOperation] = useState<ChangeOp>('replace');
  const [draft, setDraft] = useState(draftOf(apiKey.flags));
  const [removed, setRemoved] = useState<Removed>({ flags: [], props: [] });
  const [planned, setPlanned] = useState<PlannedChange | undefined>(undefined);

  const choose = (next: ChangeOp): void => {
    setOperation(next);
    setDraft(draftOf(next === 'replace' ? apiKey.flags : {}));
    setRemoved({ flags: [], props: [] });
  };

  const plan = async (values: FormValues): Promise<void> => {
    const given = operation === 'delete' ? named(removed) : typed(values);
    const accountId = values.text('accountId');
    const flags = differences(apiKey.flags, changedFlags(operation, apiKey.flags, given.flags));
    const props = differences(apiKey.props, changedObject(operation, apiKey.props, given.props));
    const moves = accountId !== '' && accountId !== apiKey.references.accountId;
    if (flags.length + props.length === 0 && !moves) throw new FieldProblems({}, 'Nothing would change.');
    setPlanned({
      flags,
      props,
      ...(moves && { accountId }),
      input: {
        op: operation,
        apikeyid: apiKey.keyid,
        ...(flags.length > 0 && { flags: given.flags }),
        ...(props.length > 0 && { props: given.props }),
        ...(moves && { references: { accountId } }),
      },
    });
  };

  const typed = (values: FormValues): Given => {
    const [problem] = draftProblems(draft);
    if (problem !== undefined) throw new FieldProblems({}, `Flags: ${problem}`);
    return { flags: flagsOf(draft), props: objectIn(values, 'props') };
  };

  return (
    <section data-panel>
      <h2 ref={heading} tabindex={-1}>
        Change it
      </h2>
      <Form
        action="Show what will change"
        needs="apikey.update"
        onSubmit={plan}
        beside={<CancelButton onClick={onClose} />}
      >
        <Choice
          legend="How"
          name="operation"
          chosen={operation}
          onChange={choose}
          options={(Object.keys(operations) as ChangeOp[]).map((value) => ({
            value,
            label: operations[value].title,
            hint: operations[value].explanation,
          }))}
        />
        {operation === 'delete' ? (
          <NamesToRemove
            key="remove"
            flags={Object.keys(apiKey.flags)}
            props={Object.keys(apiKey.props)}
            removed={removed}
            onChange={setRemoved}
          />
        ) : (
          <div key={operation}>
            <FlagEditor draft={draft} onChange={setDraft} mine={mine} names={names} />
            <JsonField name="props" label="Properties" {...(operation === 'replace' && { value: apiKey.props })} />
          </div>
        )}
        <Field name="accountId" label="Move it to the account with this id" />
      </Form>
      {planned && (
        <ConfirmChange
          planned={planned}
          onClose={() => setPlanned(undefined)}
          onConfirm={async () => {
            await api.updateApiKey(planned.input);
            setPlanned(undefined);
            toast('The key has been changed.');
            onChanged();
          }}
        />
      )}
    </section>
  );
}

interface Removed {
  readonly flags: readonly string[];
  readonly props: readonly string[];
}

interface Given {
  readonly flags: Record<string, boolean>;
  readonly props: Record<string, unknown>;
}

function named({ flags, props }: Removed): Given {
  return {
    flags: Object.fromEntries(flags.map((name) => [name, true])),
    props: Object.fromEntries(props.map((name) => [name, true])),
  };
}

interface PlannedChange {
  readonly flags: readonly Difference[];
  readonly props: readonly Difference[];
  /** The account that the key moves to. */
  readonly accountId?: string;
  readonly input: InputOf<'updateApiKey'>;
}

interface ConfirmChangeProps {
  readonly planned: PlannedChange;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** The effect of the change, shown before it is made. */
function ConfirmChange({ planned, onConfirm, onClose }: ConfirmChangeProps) {
  const { flags, props, accountId } = planned;
  return (
    <Dialog title="What will change" onClose={onClose}>
      <Differences title="Flags" differences={flags} />
      <Differences title="Properties" differences={props} />
      {accountId !== undefined && (
        <p>
          The key will belong to the account <code>{accountId}</code>.
        </p>
      )}
      <Form
        action="Change the key"
        busy="Changing it…"
        onSubmit={onConfirm}
        beside={
          <button type="button" data-kind="quiet" onClick={onClose}>
            Back
          </button>
        }
      />
    </Dialog>
  );
}

function Differences({ title, differences }: { readonly title: string; readonly differences: readonly Difference[] }) {
  if (differences.length === 0) return <p data-quiet>{title} stay as they are.</p>;
  return (
    <>
      <h3>{title}</h3>
      <ul data-plain data-differences>
        {differences.map(({ name, kind }) => (
          <li key={name}>
            <span data-tag data-tone={kind === 'added' ? 'good' : kind === 'removed' ? 'bad' : 'warn'}>
              {kind}
            </span>{' '}
            <code>{name}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

interface Names {
  readonly flags: readonly string[];
  readonly props: readonly string[];
}

interface NamesToRemoveProps extends Names {
  readonly removed: Names;
  readonly onChange: (removed: Names) => void;
}

/** The key's flags and properties as checkboxes, to be ticked for removal. */
function NamesToRemove({ flags, props, removed, onChange }: NamesToRemoveProps) {
  return (
    <div data-flags>
      <Ticks
        legend="Flags to remove"
        names={flags}
        ticked={removed.flags}
        onChange={(next) => onChange({ ...removed, flags: next })}
      />
      <Ticks
        legend="Properties to remove"
        names={props}
        ticked={removed.props}
        onChange={(next) => onChange({ ...removed, props: next })}
      />
    </div>
  );
}

interface TicksProps {
  readonly legend: string;
  readonly names: readonly string[];
  readonly ticked: readonly string[];
  readonly onChange: (ticked: readonly string[]) => void;
}

function Ticks({ legend, names, ticked, onChange }: TicksProps) {
  const id = useId();
  return (
    <fieldset>
      <legend>{legend}</legend>
      {names.length === 0 && <p data-quiet>There are none.</p>}
      {names.map((name, index) => (
        <div key={name} data-choice>
          <input
            id={`${id}-${index}`}
            type="checkbox"
            checked={ticked.includes(name)}
            onChange={(event: Event) => {
              const rest = ticked.filter((each) => each !== name);
              onChange((event.target as HTMLInputElement).checked ? [...rest, name] : rest);
            }}
          />
          <label for={`${id}-${index}`}>
            <code>{name}</code>
          </label>
        </div>
      ))}
    </fieldset>
  );
}
