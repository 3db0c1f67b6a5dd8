// In place of results where the address of the page asks for something that makes no sense.

export function BadFilters({ problems }: { readonly problems: Readonly<Partial<Record<string, string>>> }) {
  return (
    <div role="alert" data-note data-tone="bad">
      <p>This address has filters that make no sense:</p>
      <ul>
        {Object.entries(problems).map(([name, problem]) => (
          <li key={name}>
            {name}: {problem}
          </li>
        ))}
      </ul>
    </div>
  );
}
