// The flags and properties that are there, to be ticked for removal.
import { useId } from 'hono/jsx/dom';

interface Names {
  readonly flags: readonly string[];
  readonly props: readonly string[];
}

export interface NamesToRemoveProps extends Names {
  readonly removed: Names;
  readonly onChange: (removed: Names) => void;
}

export function NamesToRemove({ flags, props, removed, onChange }: NamesToRemoveProps) {
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
