// One flag of the table as a box to tick, with what it grants and, where it cannot be granted, why.
import { useId } from 'hono/jsx/dom';
import type { Coverage } from './coverage.ts';

export interface FlagChoiceProps {
  readonly flag: string;
  readonly grants: string;
  readonly checked: boolean;
  /** Why it cannot be chosen; undefined where it can. */
  readonly reason: string | undefined;
  readonly onChange: (granted: boolean) => void;
}

export function FlagChoice({ flag, grants, checked, reason, onChange }: FlagChoiceProps) {
  const id = useId();
  const isLocked = reason !== undefined;
  return (
    <div data-choice>
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={isLocked}
        aria-describedby={isLocked ? `${id}-why` : undefined}
        onChange={(event: Event) => onChange((event.target as HTMLInputElement).checked)}
      />
      <label for={id}>
        <code>{flag}</code> <span>{grants}</span>
      </label>
      {isLocked && <small id={`${id}-why`}>{reason}</small>}
    </div>
  );
}

/** Why the flag cannot be granted by somebody with these flags. */
export function lacking(coverage: Coverage, flag: string): string | undefined {
  return coverage.covers(flag) ? undefined : 'You do not have this flag yourself.';
}
