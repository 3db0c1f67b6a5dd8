// FlagList describes what each flag grants; FlagSummary is the short form for tables.
import { useState } from '../parts/state.ts';
import { abilitiesText } from './abilities.ts';
import { grantOf } from './draft.ts';

interface FlagListProps {
  readonly flags: Readonly<Record<string, unknown>>;
  /** Text for an empty list. */
  readonly none?: string;
  /** Whether they are the reader's own. */
  readonly isMine?: boolean;
}

export function FlagList({ flags, none = 'None: nothing is allowed.', isMine = false }: FlagListProps) {
  const entries = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return <p data-quiet>{none}</p>;
  return (
    <>
      <p>{abilitiesText(flags, isMine)}</p>
      <ul data-plain data-flag-list>
        {entries.map(([name, granted]) => (
          <li key={name}>
            <code>{name}</code> <Meaning name={name} granted={granted === true} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Meaning({ name, granted }: { readonly name: string; readonly granted: boolean }) {
  const grants = grantOf(name);
  if (!granted) return <span data-quiet>not granted</span>;
  return grants === undefined ? (
    <span data-quiet>not one of this service’s flags: for your own programs</span>
  ) : (
    <span>{grants}</span>
  );
}

/** The first flag, and a button that shows the rest. */
export function FlagSummary({ flags }: { readonly flags: Readonly<Record<string, unknown>> }) {
  const [isOpen, setOpen] = useState(false);
  const granted = Object.keys(flags).filter((name) => flags[name] === true);
  if (granted.includes('*')) {
    return (
      <span data-tag title="everything">
        everything
      </span>
    );
  }
  if (granted.length === 0) return <span data-quiet>none</span>;
  const rest = granted.length - 1;
  return (
    <span data-flag-summary data-open={isOpen ? '' : undefined}>
      {(isOpen ? granted : granted.slice(0, 1)).map((name) => (
        <span key={name} data-chip title={name}>
          {name.split('.').flatMap((part, n) => (n === 0 ? [part] : ['.', <wbr key={n} />, part]))}
        </span>
      ))}
      {rest > 0 && (
        <button
          key="more"
          type="button"
          data-kind="chip"
          aria-expanded={isOpen ? 'true' : 'false'}
          aria-label={isOpen ? 'Show only one flag' : `+${rest} more flags`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? '−' : `+${rest}`}
        </button>
      )}
    </span>
  );
}
