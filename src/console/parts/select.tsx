// A choice of a few as a field of a form.
import { useId } from 'hono/jsx/dom';

export interface SelectProps {
  readonly name: string;
  readonly label: string;
  /** Value and text of each. */
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly value: string;
  readonly onChange?: (value: string) => void;
}

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
