// Form keeps its values in its fields only, and shows at each field what the appliance rejected. Fields are matched by
// name, which is the same as in the request.
import { type Child, type PropsWithChildren, useRef } from 'hono/jsx/dom';
import { KmsError } from '../../errors.ts';
import { approvalIn, FieldProblems, type Problems, sentence } from '../error-text.ts';
import { Button, CancelButton } from './button.tsx';
import { ProblemContext } from './fields.tsx';
import { announce, ErrorWords, toast } from './messages.tsx';
import { useAction, useState } from './state.ts';

/** The values of a form's fields. */
export interface FormValues {
  /** Trimmed; empty if nothing was typed. */
  text(name: string): string;
  /** Exactly as typed. */
  exactly(name: string): string;
  isOn(name: string): boolean;
  /** When the form was first submitted. Ages count from then, since what waits for approval is sent again unchanged. */
  readonly firstAt: number;
}

interface FormProps {
  readonly action: string;
  /** Label of the button while the form is being sent. */
  readonly busy?: string;
  /** The permission flag that submitting needs. */
  readonly needs?: string | undefined;
  readonly kind?: 'danger' | undefined;
  /** Throws the appliance's error, or `FieldProblems`. */
  readonly onSubmit: (values: FormValues) => Promise<void>;
  /** Shown beside the submit button. */
  readonly beside?: Child;
}

export function Form(props: PropsWithChildren<FormProps>) {
  const { action, busy = 'Please wait…', needs, kind, onSubmit, beside, children } = props;
  const form = useRef<HTMLFormElement>(null);
  const [general, setGeneral] = useState<unknown>(undefined);
  const { isBusy, error, start } = useAction(
    async (element: HTMLFormElement) => {
      setGeneral(undefined);
      const missing = missingFields(element);
      if (Object.keys(missing).length > 0) throw new FieldProblems(missing);
      announce(busy);
      await onSubmit(valuesOf(element));
    },
    (thrown) => {
      const element = form.current;
      const problems = fieldsOf(thrown);
      if (!Object.keys(problems).some((name) => element?.elements.namedItem(name))) setGeneral(thrown);
      if (element) focusFirst(element, problems);
    },
  );

  const waiting = approvalIn(general) !== undefined;
  return (
    <form
      ref={form}
      method="post"
      noValidate
      onSubmit={(event: Event) => {
        event.preventDefault();
        if (form.current) void start(form.current);
      }}
      aria-busy={isBusy ? 'true' : undefined}
      data-form
    >
      <ProblemContext.Provider value={fieldsOf(error)}>{children}</ProblemContext.Provider>
      <p role="alert" data-note={waiting ? '' : undefined} data-tone={waiting ? 'warn' : undefined}>
        {general !== undefined && <ErrorWords error={general} />}
      </p>
      <div data-actions>
        <Button type="submit" {...{ kind, needs, isBusy }}>
          {isBusy ? busy : action}
        </Button>
        {beside}
      </div>
    </form>
  );
}

interface EditPanelProps {
  readonly title: string;
  /** Label of the button that starts editing. */
  readonly change: string;
  readonly action: string;
  readonly needs: string | undefined;
  readonly onBegin?: () => void;
  readonly onSave: (values: FormValues) => Promise<void>;
  /** Message once it is saved. */
  readonly saved: string;
  readonly fields: Child;
  readonly shown: Child;
}

/** A panel that shows something and lets the user edit it in place. */
export function EditPanel(props: EditPanelProps) {
  const { title, change, action, needs, onBegin, onSave, saved, fields, shown } = props;
  const [isEditing, setEditing] = useState(false);
  const begin = (): void => {
    onBegin?.();
    setEditing(true);
  };
  const save = async (values: FormValues): Promise<void> => {
    await onSave(values);
    setEditing(false);
    toast(saved);
  };
  return (
    <section data-panel>
      <div data-bar>
        <h2>{title}</h2>
        {!isEditing && (
          <Button kind="quiet" needs={needs} onClick={begin}>
            {change}
          </Button>
        )}
      </div>
      {isEditing ? (
        <Form
          key="edit"
          action={action}
          busy="Saving…"
          onSubmit={save}
          beside={<CancelButton onClick={() => setEditing(false)} />}
        >
          {fields}
        </Form>
      ) : (
        shown
      )}
    </section>
  );
}

function fieldsOf(error: unknown): Problems {
  if (error instanceof FieldProblems) return error.fields;
  if (!(error instanceof KmsError) || !error.fields) return {};
  return Object.fromEntries(Object.entries(error.fields).map(([name, text]) => [name, sentence(text)]));
}

function missingFields(form: HTMLFormElement): Problems {
  const required = [...form.querySelectorAll<HTMLInputElement>('[name][required]')];
  const empty = required.filter(({ type, checked, value }) => (type === 'checkbox' ? !checked : value.trim() === ''));
  return Object.fromEntries(
    empty.map(({ name, type }) => [name, type === 'checkbox' ? 'Tick this first.' : 'This is required.']),
  );
}

/** Focuses the first field that has a problem. */
function focusFirst(form: HTMLFormElement, problems: Problems): void {
  const fields = [...form.querySelectorAll<HTMLElement>('[name]')];
  fields.find((field) => (field.getAttribute('name') ?? '') in problems)?.focus();
}

const firstSubmitted = new WeakMap<HTMLFormElement, number>();

function valuesOf(form: HTMLFormElement): FormValues {
  const firstAt = firstSubmitted.get(form) ?? Date.now();
  firstSubmitted.set(form, firstAt);
  const data = new FormData(form);
  const exactly = (name: string): string => {
    const value = data.get(name);
    return typeof value === 'string' ? value : '';
  };
  return { exactly, text: (name) => exactly(name).trim(), isOn: (name) => data.has(name), firstAt };
}
