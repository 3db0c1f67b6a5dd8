// Changes an API key in one of the three ways there are, and shows what it will come to before anything is sent.
import { useEffect, useRef } from 'hono/jsx/dom';
import type { SafeApiKey } from '../../api/apikey.ts';
import type { Client } from '../../client/client.ts';
import { draftOf, draftProblems, flagsOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { Choice } from '../parts/choice.tsx';
import { Field, FieldProblems, Form, type FormValues } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';
import { useState } from '../parts/state.ts';
import { toast } from '../parts/toast.tsx';
import { ConfirmChange, type PlannedChange } from './confirm-change.tsx';
import { differences, flagsAfter, type Operation, operations, propsAfter } from './key-change.ts';
import { useRingNames } from './known-names.ts';
import { NamesToRemove } from './names-to-remove.tsx';

export interface ChangeKeyProps {
  readonly api: Client;
  readonly apiKey: SafeApiKey;
  /** The flags of whoever changes it. */
  readonly mine: Readonly<Record<string, unknown>>;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

export function ChangeKey({ api, apiKey, mine, onChanged, onClose }: ChangeKeyProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const rings = useRingNames(api);
  const [operation, setOperation] = useState<Operation>('replace');
  const [draft, setDraft] = useState(draftOf(apiKey.flags));
  const [removed, setRemoved] = useState<Removed>({ flags: [], props: [] });
  const [planned, setPlanned] = useState<PlannedChange | undefined>(undefined);

  const choose = (next: Operation): void => {
    setOperation(next);
    setDraft(draftOf(next === 'replace' ? apiKey.flags : {}));
    setRemoved({ flags: [], props: [] });
  };

  const plan = async (values: FormValues): Promise<void> => {
    const given = operation === 'delete' ? named(removed) : typed(values);
    const accountId = values.text('accountId');
    const flags = differences(apiKey.flags, flagsAfter(apiKey.flags, operation, given.flags));
    const props = differences(apiKey.props, propsAfter(apiKey.props, operation, given.props));
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
        beside={
          <button type="button" data-kind="quiet" onClick={onClose}>
            Cancel
          </button>
        }
      >
        <Choice
          legend="How"
          name="operation"
          chosen={operation}
          onChange={choose}
          options={(Object.keys(operations) as Operation[]).map((value) => ({
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
            <FlagEditor draft={draft} onChange={setDraft} mine={mine} rings={rings} />
            <JsonField name="props" label="Properties" {...(operation === 'replace' && { value: apiKey.props })} />
          </div>
        )}
        <Field name="accountId" label="Move it to the account with the id" />
      </Form>
      {planned && (
        <ConfirmChange
          planned={planned}
          onClose={() => setPlanned(undefined)}
          onConfirm={async () => {
            await api.updateApiKey(planned.input);
            setPlanned(undefined);
            toast('The key is changed.');
            onChanged();
          }}
        />
      )}
    </section>
  );
}

export interface Removed {
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
