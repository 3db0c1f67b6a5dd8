// Searches that narrow lists: a box that filters while the user types, or a form of filters kept in the page's address.
import { type PropsWithChildren, useEffect, useId } from 'hono/jsx/dom';
import { FieldProblems } from '../error-text.ts';
import { Form, type FormValues } from './form.tsx';
import type { Fields, SearchFields } from './search-fields.ts';
import { type List, useState } from './state.ts';

interface Narrowed<T> {
  /** Trimmed; empty if everything is shown. */
  readonly sought: string;
  readonly list: List<T>;
  /** For a `SearchBox`. */
  readonly onInput: (text: string) => void;
}

/** Keeps only the items that contain the typed text in one of their texts. */
export function useNarrowed<T>(list: List<T>, textsOf: (item: T) => readonly string[]): Narrowed<T> {
  const [typed, setTyped] = useState('');
  const sought = typed.trim();
  const words = sought.toLowerCase();
  // Matches may be on pages that are not loaded yet.
  useEffect(() => {
    if (words !== '' && list.hasMore && list.is === 'ready') list.more();
  });
  const items = list.items.filter((item) => textsOf(item).some((text) => text.toLowerCase().includes(words)));
  return { sought, list: { ...list, items }, onInput: setTyped };
}

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

interface SearchFormProps<Name extends string, Filters> {
  readonly search: SearchFields<Name, Filters>;
  /** Called with valid fields only. */
  readonly onSearch: (fields: Fields<Name>) => void;
  readonly clearHref: string;
}

/** A form of filters: invalid ones are reported at their fields, and all can be cleared at once. */
export function SearchForm<Name extends string, Filters>(props: PropsWithChildren<SearchFormProps<Name, Filters>>) {
  const { search, onSearch, clearHref, children } = props;
  const submit = async (values: FormValues): Promise<void> => {
    const typed = search.typed((name) => values.text(name));
    const result = search.filters(typed);
    // Cast: fields without a problem have no entry.
    if ('problems' in result) throw new FieldProblems(result.problems as Readonly<Record<string, string>>);
    onSearch(typed);
  };
  return (
    <section aria-label="Filters" data-panel data-filters>
      <Form
        action="Search"
        onSubmit={submit}
        beside={
          <a href={clearHref} data-button data-kind="quiet">
            Clear all filters
          </a>
        }
      >
        {children}
      </Form>
    </section>
  );
}

/** Shown instead of results if the page's address has invalid filters. */
export function BadFilters({ problems }: { readonly problems: Readonly<Partial<Record<string, string>>> }) {
  return (
    <div role="alert" data-note data-tone="bad">
      <p>Some filters in this address are not valid:</p>
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
