// A search by a form of filters that are kept in the page's address.
import type { PropsWithChildren } from 'hono/jsx/dom';
import { FieldProblems } from '../error-text.ts';
import { Form, type FormValues } from './form.tsx';
import type { Fields, SearchFields } from './search-fields.ts';

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
