// A list of the appliance as a table: page by page, empty, loading and failed. On a phone each row becomes a block of its own.
import { type Child, useEffect, useRef } from 'hono/jsx/dom';
import { Failed, Loading } from './answer.tsx';
import { useState } from './state.ts';

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly hasMore: boolean; readonly nextCursor?: string };
}

export interface Pages<T> {
  readonly items: readonly T[];
  readonly is: 'loading' | 'failed' | 'ready';
  readonly error: unknown;
  readonly hasMore: boolean;
  /** Gets the next page. */
  readonly more: () => void;
  /** Begins anew; what is there stays until the answer comes. */
  readonly reload: () => void;
}

interface State<T> {
  readonly items: readonly T[];
  readonly is: Pages<T>['is'];
  readonly error?: unknown;
  readonly next?: string | undefined;
}

/** A page as the client answers it: `(page, signal) => api.listKeyrings({ ...page }, { signal })`. */
export type LoadPage<T> = (
  page: { readonly cursor?: string; readonly limit: number },
  signal: AbortSignal,
) => Promise<PageAnswer<T>>;

/** Asks for the first page when the part appears and whenever one of `about` changes. */
export function usePages<T>(load: LoadPage<T>, about: readonly unknown[] = [], limit = 100): Pages<T> {
  const [state, setState] = useState<State<T>>({ items: [], is: 'loading' });
  const asking = useRef<AbortController>(null);

  const ask = async (before: readonly T[], cursor?: string): Promise<void> => {
    asking.current?.abort();
    const mine = new AbortController();
    asking.current = mine;
    const page = { limit, ...(cursor !== undefined && { cursor }) };
    const result = await load(page, AbortSignal.any([mine.signal, AbortSignal.timeout(30_000)])).then(
      ({ data, pagination }): State<T> => ({ items: [...before, ...data], is: 'ready', next: pagination.nextCursor }),
      (error: unknown): State<T> => ({ items: before, is: 'failed', error, next: cursor }),
    );
    if (asking.current === mine) setState(result);
  };

  useEffect(() => {
    setState({ items: [], is: 'loading' });
    void ask([]);
    return () => {
      asking.current?.abort();
      asking.current = null;
    };
  }, [...about]);

  const { items, is, error, next } = state;
  return {
    items,
    is,
    error,
    hasMore: next !== undefined,
    more() {
      if (is === 'loading') return;
      setState({ ...state, is: 'loading' });
      void ask(items, next);
    },
    reload: () => void ask([]),
  };
}

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Child;
  /** `number` stands to the right; `name` is the row's head. */
  readonly kind?: 'name' | 'number';
}

export interface DataTableProps<T> {
  /** What the table holds, for those who hear it. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly pages: Pages<T>;
  readonly keyOf: (item: T) => string;
  /** In place of a table without rows: what could be here and how it gets here. */
  readonly empty: Child;
}

export function DataTable<T>({ caption, columns, pages, keyOf, empty }: DataTableProps<T>) {
  const { items, is, error, hasMore, more } = pages;
  return (
    <div data-list aria-busy={is === 'loading' ? 'true' : undefined}>
      {items.length > 0 && <Rows key="rows" {...{ caption, columns, items, keyOf }} />}
      {items.length === 0 && is === 'ready' && (
        <div key="empty" data-empty>
          {empty}
        </div>
      )}
      {is === 'loading' && <Loading key="loading" />}
      {is === 'failed' && <Failed key="failed" error={error} onRetry={more} />}
      {is === 'ready' && items.length > 0 && (
        <p key="count" data-count>
          <span role="status">
            {items.length === 1 ? '1 entry' : `${items.length} entries`}
            {hasMore ? ', and there are more.' : '.'}
          </span>{' '}
          {hasMore && (
            <button type="button" data-kind="quiet" onClick={more}>
              Show more
            </button>
          )}
        </p>
      )}
    </div>
  );
}

interface RowsProps<T> extends Pick<DataTableProps<T>, 'caption' | 'columns' | 'keyOf'> {
  readonly items: readonly T[];
}

/** A table of what is at hand. */
export function Rows<T>({ caption, columns, items, keyOf }: RowsProps<T>) {
  return (
    <table>
      <caption data-spoken>{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, kind }) => (
            <th key={title} scope="col" data-kind={kind}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            {columns.map(({ title, cell, kind }) =>
              kind === 'name' ? (
                <th key={title} scope="row" data-title={title}>
                  <div>{cell(item)}</div>
                </th>
              ) : (
                <td key={title} data-kind={kind} data-title={title}>
                  <div>{cell(item)}</div>
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
