// A form whose values are in its fields alone, and which says at each field what the appliance found wrong with it. Fields inside it are found
// by their names, which are those of the request.
import { type Child, createContext, type PropsWithChildren, useContext, useId, useRef } from 'hono/jsx/dom';
import { KmsError } from '../../errors.ts';
import { announce } from '../announce.ts';
import { troubleText } from '../trouble.ts';
import { Button } from './button.tsx';
import { focusFirst, missingFields, sentence, valuesOf } from './form-values.ts';
import { useState } from './state.ts';

export type Problems = Readonly<Record<string, string>>;

/** What is wrong with values that need not be sent: text by field. `message`: of all together, where no field stands for it. */
export class FieldProblems extends Error {
  readonly fields: Problems;

  constructor(fields: Problems, message = Object.values(fields).join(' ')) {
    super(message);
    this.fields = fields;
  }
}

/** Text of the fields of a form. */
export interface FormValues {
  /** Without blanks around it; empty where nothing was typed. */
  text(name: string): string;
  /** As it was typed. */
  exactly(name: string): string;
  isOn(name: string): boolean;
}

const ProblemContext = createContext<Problems>({});

export interface FormProps {
  readonly action: string;
  /** What the button says meanwhile. */
  readonly busy?: string;
  /** The permission flag without which it would be refused. */
  readonly needs?: string | undefined;
  readonly kind?: 'danger' | undefined;
  /** Throws what the appliance answered, or `FieldProblems`. */
  readonly onSubmit: (values: FormValues) => Promise<void>;
  /** Beside the button that sends it. */
  readonly beside?: Child;
}

export function Form(props: PropsWithChildren<FormProps>) {
  const { action, busy = 'Please wait…', needs, kind, onSubmit, beside, children } = props;
  const form = useRef<HTMLFormElement>(null);
  const underWay = useRef(false);
  const [isBusy, setBusy] = useState(false);
  const [problems, setProblems] = useState<Problems>({});
  const [general, setGeneral] = useState('');

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const element = form.current;
    if (underWay.current || !element) return;
    const missing = missingFields(element);
    setProblems(missing);
    setGeneral('');
    if (Object.keys(missing).length > 0) return focusFirst(element, missing);
    underWay.current = true;
    setBusy(true);
    announce(busy);
    try {
      await onSubmit(valuesOf(element));
    } catch (error) {
      const fields = fieldsOf(error);
      const ofThisForm = Object.keys(fields).some((name) => element.elements.namedItem(name));
      setProblems(fields);
      if (!ofThisForm) setGeneral(error instanceof FieldProblems ? error.message : troubleText(error));
      focusFirst(element, fields);
    }
    underWay.current = false;
    setBusy(false);
  };

  return (
    <form ref={form} method="post" noValidate onSubmit={submit} aria-busy={isBusy ? 'true' : undefined} data-form>
      <ProblemContext.Provider value={problems}>{children}</ProblemContext.Provider>
      <p role="alert">{general}</p>
      <div data-actions>
        <Button type="submit" {...{ kind, needs, isBusy }}>
          {isBusy ? busy : action}
        </Button>
        {beside}
      </div>
    </form>
  );
}

function fieldsOf(error: unknown): Problems {
  if (error instanceof FieldProblems) return error.fields;
  if (!(error instanceof KmsError) || !error.fields) return {};
  return Object.fromEntries(Object.entries(error.fields).map(([name, text]) => [name, sentence(text)]));
}

export interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: Child;
  /** To begin with. */
  readonly value?: string;
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'datetime-local';
  readonly isRequired?: boolean | undefined;
  readonly autocomplete?: string;
  /** A list of proposals. */
  readonly list?: string;
  readonly placeholder?: string;
  readonly onInput?: (value: string) => void;
}

export function Field(props: FieldProps) {
  const {
    name,
    label,
    hint,
    value,
    type = 'text',
    isRequired,
    autocomplete = 'off',
    list,
    placeholder,
    onInput,
  } = props;
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <input
          {...attributes}
          type={type}
          value={value}
          list={list}
          placeholder={placeholder}
          autocomplete={autocomplete}
          autocapitalize="none"
          autocorrect="off"
          spellcheck={false}
          onInput={(event: Event) => onInput?.((event.target as HTMLInputElement).value)}
        />
      )}
    </Labelled>
  );
}

export interface TextAreaProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'value' | 'isRequired'> {
  readonly rows?: number;
  /** For code and data. */
  readonly isCode?: boolean;
}

export function TextArea({ name, label, hint, value, isRequired, rows = 3, isCode = false }: TextAreaProps) {
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <textarea {...attributes} rows={rows} spellcheck={!isCode} data-code={isCode ? '' : undefined}>
          {value}
        </textarea>
      )}
    </Labelled>
  );
}

export interface CheckProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
  readonly isOn?: boolean;
  readonly onChange?: (isOn: boolean) => void;
}

export function Check({ name, label, hint, isRequired, isOn = false, onChange }: CheckProps) {
  const id = useId();
  const problem = useContext(ProblemContext)[name];
  return (
    <div data-field data-check>
      <input
        id={id}
        name={name}
        type="checkbox"
        checked={isOn}
        required={isRequired}
        aria-invalid={problem === undefined ? undefined : 'true'}
        aria-describedby={`${id}-hint ${id}-problem`}
        onChange={(event: Event) => onChange?.((event.target as HTMLInputElement).checked)}
      />
      <label for={id}>{label}</label>
      <Notes id={id} hint={hint} problem={problem} />
    </div>
  );
}

export interface LabelledProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
  readonly children: (attributes: object) => Child;
}

/** A field of another kind, with its label, hint and what is wrong with it. */
export function Labelled({ name, label, hint, isRequired = false, children }: LabelledProps) {
  const id = useId();
  const problem = useContext(ProblemContext)[name];
  return (
    <div data-field>
      <label for={id}>
        {label}
        {!isRequired && <small> (optional)</small>}
      </label>
      {children({
        id,
        name,
        required: isRequired,
        'aria-invalid': problem === undefined ? undefined : 'true',
        'aria-describedby': `${id}-hint ${id}-problem`,
      })}
      <Notes id={id} hint={hint} problem={problem} />
    </div>
  );
}

interface NotesProps {
  readonly id: string;
  readonly hint: Child;
  readonly problem: string | undefined;
}

function Notes({ id, hint, problem }: NotesProps) {
  return (
    <>
      <p id={`${id}-problem`} data-problem>
        {problem}
      </p>
      <p id={`${id}-hint`} data-hint>
        {hint}
      </p>
    </>
  );
}
