// Rows of operations granted on one ring, or on all: the ring by name, the operations by ticking.
import { useId } from 'hono/jsx/dom';
import type { Coverage } from './coverage.ts';
import { type FlagDraft, type RingRow, ringProblem, withOperation, withRing } from './draft.ts';
import { FlagChoice, lacking } from './flag-choice.tsx';
import { type FlagOperation, wildcard } from './groups.ts';

export interface RingFlagsProps {
  readonly resource: string;
  readonly operations: readonly FlagOperation[];
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  readonly coverage: Coverage;
  /** The id of the list of rings' names. */
  readonly names: string;
}

export function RingFlags({ resource, operations, draft, onChange, coverage, names }: RingFlagsProps) {
  const rows = draft.rings.map((row, index) => ({ row, index })).filter(({ row }) => row.resource === resource);
  return (
    <>
      {rows.map(({ row, index }, position) => (
        <Row
          key={index}
          row={row}
          title={`Rings, row ${position + 1}`}
          operations={operations}
          coverage={coverage}
          names={names}
          onChange={(changed) => onChange(withRing(draft, index, changed))}
        />
      ))}
      <button
        type="button"
        data-kind="quiet"
        onClick={() => onChange(withRing(draft, draft.rings.length, { resource, ring: '', operations: [] }))}
      >
        {rows.length === 0 ? 'Grant operations on a ring' : 'Add another ring'}
      </button>
    </>
  );
}

interface RowProps {
  readonly row: RingRow;
  readonly title: string;
  readonly operations: readonly FlagOperation[];
  readonly coverage: Coverage;
  readonly names: string;
  readonly onChange: (row: RingRow | undefined) => void;
}

function Row({ row, title, operations, coverage, names, onChange }: RowProps) {
  const id = useId();
  const isEvery = row.ring === wildcard;
  const problem = row.operations.length > 0 ? ringProblem(row) : undefined;
  const ring = row.ring.trim().toLowerCase();
  const choices = [...operations, { name: wildcard, grants: 'every operation on it, now and later' }];
  return (
    <fieldset data-row>
      <legend>{title}</legend>
      <div data-choice>
        <input
          id={`${id}-every`}
          type="checkbox"
          checked={isEvery}
          onChange={(event: Event) =>
            onChange({ ...row, ring: (event.target as HTMLInputElement).checked ? wildcard : '' })
          }
        />
        <label for={`${id}-every`}>All rings, now and later</label>
      </div>
      {!isEvery && (
        <>
          <label for={id}>Name of the ring</label>
          <input
            id={id}
            list={names}
            value={row.ring}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            aria-invalid={problem === undefined ? undefined : 'true'}
            aria-describedby={problem === undefined ? undefined : `${id}-problem`}
            onInput={(event: Event) => onChange({ ...row, ring: (event.target as HTMLInputElement).value })}
          />
          {problem !== undefined && (
            <p id={`${id}-problem`} data-tone="bad">
              {problem}
            </p>
          )}
        </>
      )}
      {choices.map(({ name, grants }) => {
        const flag = `${row.resource}.${ring || '<ringname>'}.${name}`;
        return (
          <FlagChoice
            key={name}
            flag={flag}
            grants={grants}
            checked={row.operations.includes(name)}
            reason={ring === '' ? undefined : lacking(coverage, flag)}
            onChange={(granted) => onChange(withOperation(row, name, granted))}
          />
        );
      })}
      <button type="button" data-kind="quiet" onClick={() => onChange(undefined)}>
        Remove {title.toLowerCase()}
      </button>
    </fieldset>
  );
}
