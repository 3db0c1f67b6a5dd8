// The form of a search with filters, whatever those are: what makes no sense is told at its field, and all can be cleared at once.
import type { PropsWithChildren } from 'hono/jsx/dom';
import type { Fields, SearchFields } from '../search-fields.ts';
import { FieldProblems, Form, type FormValues } from './form.tsx';

export interface SearchFormProps<Name extends string, Filters> {
  readonly search: SearchFields<Name, Filters>;
  /** With fields that make sense. */
  readonly onSearch: (fields: Fields<Name>) => void;
  readonly clearHref: string;
}

export function SearchForm<Name extends string, Filters>(props: PropsWithChildren<SearchFormProps<Name, Filters>>) {
  const { search, onSearch, clearHref, children } = props;
  const submit = async (values: FormValues): Promise<void> => {
    const typed = search.of((name) => values.text(name));
    const result = search.filters(typed);
    // Cast: what is not a problem has no entry.
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
