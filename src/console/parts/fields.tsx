// Form fields, each with its label, hint and problem.
import { type Child, createContext, useContext, useId } from 'hono/jsx/dom';
import type { Problems } from '../error-text.ts';
import { jsonText } from '../text.ts';

/** Problems that a form found with its fields. */
export const ProblemContext = createContext<Problems>({});

interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: Child;
  /** Initial value. */
  readonly value?: string;
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'datetime-local';
  readonly isRequired?: boolean | undefined;
  readonly autocomplete?: string;
  readonly proposals?: readonly string[];
  readonly onInput?: (value: string) => void;
}

export function Field(props: FieldProps) {
  const { name, label, hint, value, type = 'text', isRequired, autocomplete = 'off', proposals, onInput } = props;
  const id = useId();
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <>
          <input
            {...attributes}
            type={type}
            value={value}
            list={proposals && id}
            autocomplete={autocomplete}
            autocapitalize="none"
            autocorrect="off"
            spellcheck={false}
            onInput={(event: Event) => onInput?.((event.target as HTMLInputElement).value)}
          />
          {proposals && <Proposals id={id} texts={proposals} />}
        </>
      )}
    </Labelled>
  );
}

/** Suggestions for the `list` of an input. */
export function Proposals({ id, texts }: { readonly id: string; readonly texts: readonly string[] }) {
  return (
    <datalist id={id}>
      {texts.map((text) => (
        <option key={text} value={text} />
      ))}
    </datalist>
  );
}

interface TextAreaProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'value' | 'isRequired'> {
  readonly rows?: number;
  /** For code and data. */
  readonly isCode?: boolean;
  /** Maximum length in characters; the browser accepts no more. */
  readonly most?: number;
}

export function TextArea({ name, label, hint, value, isRequired, rows = 3, isCode = false, most }: TextAreaProps) {
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <textarea {...attributes} rows={rows} maxLength={most} spellcheck={!isCode} data-code={isCode ? '' : undefined}>
          {value}
        </textarea>
      )}
    </Labelled>
  );
}

interface CheckProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
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

interface LabelledProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
  readonly children: (attributes: object) => Child;
}

/** A field of another kind with its label, hint and problem. */
function Labelled({ name, label, hint, isRequired = false, children }: LabelledProps) {
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

interface FileFieldProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
  /** Called with undefined when the choice is cleared. */
  readonly onFile: (file: File | undefined) => void;
}

/** The file is not read until something needs it. */
export function FileField({ name, label, hint, isRequired = false, onFile }: FileFieldProps) {
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <input
          {...attributes}
          type="file"
          onChange={(event: Event) => onFile((event.target as HTMLInputElement).files?.[0])}
        />
      )}
    </Labelled>
  );
}

interface SelectProps {
  readonly name: string;
  readonly label: string;
  /** Value and label of each option. */
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly value: string;
  readonly onChange?: (value: string) => void;
}

/** A choice of one option, as a list. */
export function Select({ name, label, options, value, onChange }: SelectProps) {
  const id = useId();
  return (
    <div data-field>
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        value={value}
        onChange={(event: Event) => onChange?.((event.target as HTMLSelectElement).value)}
      >
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface Option<Value extends string> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: Child;
}

interface ChoiceProps<Value extends string> {
  readonly legend: string;
  readonly name: string;
  readonly options: readonly Option<Value>[];
  readonly chosen: Value;
  readonly onChange: (value: Value) => void;
}

/** A choice of one option, as radio buttons with a line about each. */
export function Choice<Value extends string>({ legend, name, options, chosen, onChange }: ChoiceProps<Value>) {
  const id = useId();
  return (
    <fieldset data-choices>
      <legend>{legend}</legend>
      {options.map(({ value, label, hint }) => (
        <div key={value} data-check>
          <input
            id={`${id}-${value}`}
            type="radio"
            name={name}
            value={value}
            checked={chosen === value}
            aria-describedby={hint === undefined ? undefined : `${id}-${value}-hint`}
            onChange={() => onChange(value)}
          />
          <label for={`${id}-${value}`}>{label}</label>
          {hint !== undefined && (
            <p id={`${id}-${value}-hint`} data-hint>
              {hint}
            </p>
          )}
        </div>
      ))}
    </fieldset>
  );
}

interface JsonFieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: Child;
  readonly value?: object;
}

export function JsonField({ name, label, hint = 'A JSON object; leave it empty for {}.', value }: JsonFieldProps) {
  const isEmpty = value === undefined || Object.keys(value).length === 0;
  const text = isEmpty ? '' : jsonText(value);
  const rows = Math.min(12, Math.max(3, text.split('\n').length));
  return <TextArea {...{ name, label, hint, rows }} value={text} isCode />;
}
