// Flags by name: those that programs keep for themselves, and those of the table that are set to false. Both are kept and let nobody in here.
import { useId } from 'hono/jsx/dom';
import type { Coverage } from './coverage.ts';
import { type FlagDraft, type OtherRow, otherProblem, otherWarning, withOther } from './draft.ts';

export interface OtherFlagsProps {
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  readonly coverage: Coverage;
}

export function OtherFlags({ draft, onChange, coverage }: OtherFlagsProps) {
  return (
    <details open={draft.others.length > 0 || undefined}>
      <summary>
        <strong>Other flags, by name</strong>: {draft.others.length === 0 ? 'none' : draft.others.length}
      </summary>
      <p>Programs of your own may keep permissions here. This service keeps them and looks at none of them.</p>
      {draft.others.map((row, index) => (
        <Row
          key={index}
          row={row}
          position={index + 1}
          coverage={coverage}
          onChange={(changed) => onChange(withOther(draft, index, changed))}
        />
      ))}
      <button
        type="button"
        data-kind="quiet"
        onClick={() => onChange(withOther(draft, draft.others.length, { name: '', granted: true }))}
      >
        Add a flag by name
      </button>
    </details>
  );
}

interface RowProps {
  readonly row: OtherRow;
  readonly position: number;
  readonly coverage: Coverage;
  readonly onChange: (row: OtherRow | undefined) => void;
}

function Row({ row, position, coverage, onChange }: RowProps) {
  const id = useId();
  const problem = otherProblem(row);
  const warning = otherWarning(row);
  const isLacking = row.granted && row.name !== '' && !coverage.covers(row.name);
  return (
    <fieldset data-row>
      <legend>Flag by name, {position}</legend>
      <label for={id}>Name</label>
      <input
        id={id}
        value={row.name}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby={`${id}-notes`}
        onInput={(event: Event) => onChange({ ...row, name: (event.target as HTMLInputElement).value })}
      />
      <div data-choice>
        <input
          id={`${id}-granted`}
          type="checkbox"
          checked={row.granted}
          onChange={(event: Event) => onChange({ ...row, granted: (event.target as HTMLInputElement).checked })}
        />
        <label for={`${id}-granted`}>Granted</label>
      </div>
      <div id={`${id}-notes`}>
        {problem !== undefined && <p data-tone="bad">{problem}</p>}
        {warning !== undefined && <p data-tone="warn">{warning}</p>}
        {isLacking && <p data-tone="bad">You do not have this flag yourself, so the service will refuse it.</p>}
      </div>
      <button type="button" data-kind="quiet" onClick={() => onChange(undefined)}>
        Remove flag {position}
      </button>
    </fieldset>
  );
}
