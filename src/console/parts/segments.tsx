// Segments are a few choices side by side, of which one is active.
import { useId } from 'hono/jsx/dom';

interface SegmentsProps<Value extends string> {
  /** For screen readers. */
  readonly legend: string;
  readonly choices: readonly { readonly value: Value; readonly label: string }[];
  readonly chosen: Value;
  readonly onChange: (value: Value) => void;
}

export function Segments<Value extends string>({ legend, choices, chosen, onChange }: SegmentsProps<Value>) {
  const id = useId();
  return (
    <fieldset data-segments>
      <legend data-spoken>{legend}</legend>
      {choices.map(({ value, label }) => (
        <span key={value}>
          <input
            id={`${id}-${value}`}
            type="radio"
            name={id}
            checked={value === chosen}
            onChange={() => onChange(value)}
          />
          <label for={`${id}-${value}`}>{label}</label>
        </span>
      ))}
    </fieldset>
  );
}
