// One of a few, as radio buttons with a line about each.
import { type Child, useId } from 'hono/jsx/dom';

export interface Option<Value extends string> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: Child;
}

export interface ChoiceProps<Value extends string> {
  readonly legend: string;
  readonly name: string;
  readonly options: readonly Option<Value>[];
  readonly chosen: Value;
  readonly onChange: (value: Value) => void;
}

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
