// Permission flags in short, for a list.

export function FlagSummary({ flags }: { readonly flags: Readonly<Record<string, unknown>> }) {
  const granted = Object.keys(flags).filter((name) => flags[name] === true);
  if (granted.includes('*')) return <span data-tag>everything</span>;
  if (granted.length === 0) return <span data-quiet>none</span>;
  const rest = granted.length - 2;
  return (
    <span>
      {granted.slice(0, 2).join(', ')}
      {rest > 0 && ` and ${rest} more`}
    </span>
  );
}
