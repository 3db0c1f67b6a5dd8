// A field that narrows a list while one types.
import { useId } from 'hono/jsx/dom';

export function SearchBox({ label, onInput }: { readonly label: string; readonly onInput: (text: string) => void }) {
  const id = useId();
  return (
    <search data-search>
      <label for={id}>{label}</label>
      <input
        id={id}
        type="search"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        onInput={(event: Event) => onInput((event.target as HTMLInputElement).value)}
      />
    </search>
  );
}
