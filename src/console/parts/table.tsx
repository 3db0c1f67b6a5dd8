// DataTable shows a paginated list as a table, including its empty, loading and failed states. On a phone each row
// becomes a block.
import type { Child } from 'hono/jsx/dom';
import { Icon } from './icon.tsx';
import { Failed, Loading } from './messages.tsx';
import type { List } from './state.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Child;
  /** `number` is right-aligned; `name` is the row's header cell. */
  readonly kind?: 'name' | 'number';
}

interface DataTableProps<T> {
  /** Caption for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly list: List<T>;
  readonly keyOf: (item: T) => string;
  /** Shown instead of an empty table: what could be here, and how it gets here. */
  readonly empty: Child;
}

export function DataTable<T>({ caption, columns, list, keyOf, empty }: DataTableProps<T>) {
  const { items, is } = list;
  return (
    <div data-list aria-busy={is === 'loading' ? 'true' : undefined}>
      {items.length > 0 && <Rows key="rows" {...{ caption, columns, items, keyOf }} />}
      <ListEnd key="end" list={list} empty={empty} />
    </div>
  );
}

/** Below a list: the number of items, a button for more, or why there are none. */
export function ListEnd<T>({ list, empty }: Pick<DataTableProps<T>, 'list' | 'empty'>) {
  const { items, is, error, hasMore, more, again } = list;
  return (
    <>
      {items.length === 0 && is === 'ready' && (
        <div key="empty" data-empty>
          {empty}
        </div>
      )}
      {is === 'loading' && <Loading key="loading" />}
      {is === 'failed' && <Failed key="failed" error={error} onRetry={more} />}
      {is === 'ready' && (
        <p key="count" data-count>
          {items.length > 0 && (
            <span role="status">
              {items.length === 1 ? '1 entry' : `${items.length} entries`}
              {hasMore ? ', and there are more.' : '.'}
            </span>
          )}
          {hasMore && items.length > 0 && (
            <button type="button" data-kind="quiet" onClick={more}>
              Show more
            </button>
          )}
          <button type="button" data-kind="link" aria-label="Refresh the list" onClick={again}>
            <Icon name="refresh" /> Refresh
          </button>
        </p>
      )}
    </>
  );
}

interface RowsProps<T> extends Pick<DataTableProps<T>, 'caption' | 'columns' | 'keyOf'> {
  readonly items: readonly T[];
}

/** A table of items that are already loaded. */
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
