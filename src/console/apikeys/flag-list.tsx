// Permission flags as a list that says what each grants.
import { grantOf } from '../flags/draft.ts';

export function FlagList({ flags }: { readonly flags: Readonly<Record<string, unknown>> }) {
  const entries = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return <p data-quiet>None: nothing is allowed.</p>;
  return (
    <ul data-plain data-flag-list>
      {entries.map(([name, granted]) => (
        <li key={name}>
          <code>{name}</code> <Meaning name={name} granted={granted === true} />
        </li>
      ))}
    </ul>
  );
}

function Meaning({ name, granted }: { readonly name: string; readonly granted: boolean }) {
  const grants = grantOf(name);
  if (!granted) return <span data-quiet>not granted</span>;
  return grants === undefined ? (
    <span data-quiet>not one of this service’s flags: for programs of your own</span>
  ) : (
    <span>{grants}</span>
  );
}
