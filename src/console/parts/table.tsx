// DataTable shows a paginated list as a table, including its empty, loading and failed states: a line for each row, or
// a block for each on a phone. Its columns may be sortable, and its rows selectable.
import type { Child } from 'hono/jsx/dom';
import { countText } from '../text.ts';
import type { Sort, SortValue } from './arranging.ts';
import { Icon } from './icon.tsx';
import { Failed } from './messages.tsx';
import { type List, useState } from './state.ts';

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => Child;
  /**
   * `number` is right-aligned; `name` is the row's header cell, which gets room before the others; `long` is cut where
   * room is short, so its cell has the whole text in a title.
   */
  readonly kind?: 'name' | 'number' | 'long';
  /** A column of less interest, left out of tables that are narrower than this. */
  readonly shownFrom?: 'narrow' | 'medium' | 'wide' | 'widest';
  /** Value to sort by; without it the column cannot be sorted by. */
  readonly sort?: (item: T) => SortValue;
}

/** Name of a column in the page's address. */
export function columnId(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-');
}

interface Sorting {
  readonly now: Sort | undefined;
  readonly onSort: (by: string) => void;
}

interface Selection<T> {
  /** Keys of the rows that are selected. */
  readonly keys: ReadonlySet<string>;
  readonly nameOf: (item: T) => string;
  readonly onChange: (keys: ReadonlySet<string>) => void;
}

interface DataTableProps<T> {
  /** Caption for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly list: List<T>;
  readonly keyOf: (item: T) => string;
  /** Shown instead of an empty table: what could be here, and how it gets here. */
  readonly empty: Child;
  readonly sorting?: Sorting | undefined;
  readonly selection?: Selection<T> | undefined;
  /** Number of items, if some of them are not shown. */
  readonly total?: number | undefined;
  /** Rows of a longer table that are shown at first; a button unfolds the rest. Default: all. */
  readonly fold?: number;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { caption, columns, list, keyOf, empty, sorting, selection, fold = Number.POSITIVE_INFINITY } = props;
  const { is } = list;
  const [isUnfolded, setUnfolded] = useState(false);
  const isFolded = !isUnfolded && list.items.length > fold;
  const items = isFolded ? list.items.slice(0, fold) : list.items;
  const total = isFolded ? list.items.length : props.total;
  return (
    <div data-list aria-busy={is === 'loading' ? 'true' : undefined}>
      {items.length > 0 && <Rows key="rows" {...{ caption, columns, items, keyOf, sorting, selection }} />}
      <ListEnd
        key="end"
        {...{ empty, total }}
        list={isFolded ? unfolding(list, items, () => setUnfolded(true)) : list}
      />
    </div>
  );
}

/** The list as long as it is folded: its button for more shows the rest. */
function unfolding<T>(list: List<T>, items: List<T>['items'], unfold: () => void): List<T> {
  return { ...list, items, hasMore: true, more: list.is === 'failed' ? list.more : unfold };
}

/** Below a list: the number of items, a button for more, or why there are none. */
export function ListEnd<T>({ list, empty, total }: Pick<DataTableProps<T>, 'list' | 'empty' | 'total'>) {
  const { items, is, error, hasMore, more, again } = list;
  return (
    <>
      {items.length === 0 && is === 'ready' && (
        <div key="empty" data-empty>
          {empty}
        </div>
      )}
      {is === 'loading' && <Skeleton key="loading" rows={items.length === 0 ? 6 : 1} />}
      {is === 'failed' && <Failed key="failed" error={error} onRetry={more} />}
      {is === 'ready' && (
        <p key="count" data-count>
          {items.length > 0 && <span role="status">{countOf(items.length, total, hasMore)}</span>}
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

function countOf(shown: number, total: number | undefined, hasMore: boolean): string {
  if (total !== undefined && total > shown) return `${countText(shown)} of ${countText(total)} entries.`;
  return `${shown === 1 ? '1 entry' : `${countText(shown)} entries`}${hasMore ? ', and there are more.' : '.'}`;
}

/** Stands where rows will be, in their height, while they are loading. */
function Skeleton({ rows }: { readonly rows: number }) {
  return (
    <div role="status" data-loading data-skeleton>
      <span data-spoken>Loading…</span>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} aria-hidden="true" />
      ))}
    </div>
  );
}

interface RowsProps<T> extends Pick<DataTableProps<T>, 'caption' | 'columns' | 'keyOf' | 'sorting' | 'selection'> {
  readonly items: readonly T[];
}

/** A table of items that are already loaded. */
export function Rows<T>({ caption, columns, items, keyOf, sorting, selection }: RowsProps<T>) {
  return (
    <table data-rows={sorting ? '' : undefined}>
      <caption data-spoken>{caption}</caption>
      <thead>
        <tr>
          {selection && (
            <td key="select" data-select>
              <SelectAll {...{ items, keyOf, selection }} />
            </td>
          )}
          {columns.map((column) => (
            <Heading key={column.title} column={column} sorting={sorting} />
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)} data-selected={selection?.keys.has(keyOf(item)) ? '' : undefined}>
            {selection && (
              <td key="select" data-select>
                <Select item={item} keyOf={keyOf} selection={selection} />
              </td>
            )}
            {columns.map((column) => (
              <Cell key={column.title} column={column} item={item} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface CellProps<T> {
  readonly column: Column<T>;
  readonly item: T;
}

/** The inner element is what the text is cut by, and the outer one sizes it (finder.css). */
function Cell<T>({ column: { title, cell, kind, shownFrom }, item }: CellProps<T>) {
  const content = (
    <div>
      <div>{cell(item)}</div>
    </div>
  );
  return kind === 'name' ? (
    <th scope="row" data-title={title}>
      {content}
    </th>
  ) : (
    <td data-kind={kind} data-from={shownFrom} data-title={title}>
      {content}
    </td>
  );
}

interface HeadingProps<T> {
  readonly column: Column<T>;
  readonly sorting: Sorting | undefined;
}

function Heading<T>({ column: { title, kind, shownFrom, sort }, sorting }: HeadingProps<T>) {
  if (!sorting || !sort) {
    return (
      <th scope="col" data-kind={kind} data-from={shownFrom}>
        {title}
      </th>
    );
  }
  const { now, onSort } = sorting;
  const order = now?.by === columnId(title) ? (now.isDown ? 'descending' : 'ascending') : 'none';
  return (
    <th scope="col" data-kind={kind} data-from={shownFrom} aria-sort={order}>
      <button type="button" data-kind="link" data-sort onClick={() => onSort(columnId(title))}>
        {title}
      </button>
    </th>
  );
}

interface SelectAllProps<T> extends Pick<RowsProps<T>, 'items' | 'keyOf'> {
  readonly selection: Selection<T>;
}

function SelectAll<T>({ items, keyOf, selection: { keys, onChange } }: SelectAllProps<T>) {
  const all = items.every((item) => keys.has(keyOf(item)));
  return (
    <input
      type="checkbox"
      aria-label="Select all that are shown"
      checked={all}
      onChange={() => onChange(all ? new Set() : new Set(items.map(keyOf)))}
    />
  );
}

interface SelectProps<T> extends Pick<SelectAllProps<T>, 'keyOf' | 'selection'> {
  readonly item: T;
}

function Select<T>({ item, keyOf, selection: { keys, nameOf, onChange } }: SelectProps<T>) {
  const key = keyOf(item);
  return (
    <input
      type="checkbox"
      aria-label={`Select ${nameOf(item)}`}
      checked={keys.has(key)}
      onChange={() => {
        const next = new Set(keys);
        if (!next.delete(key)) next.add(key);
        onChange(next);
      }}
    />
  );
}
