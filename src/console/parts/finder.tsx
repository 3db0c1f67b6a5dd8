// Finder is a list that is searched as one types, filtered by chips, sorted by its columns, and changed in bulk. How it
// is arranged stays in the page's address.
import { type Child, useEffect, useId, useRef } from 'hono/jsx/dom';
import type { ConsolePageName } from '../../api/console-pages.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { countText } from '../text.ts';
import {
  type Arrangement,
  arranged,
  arrangementOf,
  type Chip,
  nextSort,
  queryOf,
  type Shape,
  toggled,
} from './arranging.ts';
import { type BulkAction, BulkBar } from './bulk.tsx';
import { keptIn } from './kept.ts';
import { type List, mostSearched, useAnswer, useState } from './state.ts';
import { type Column, columnId, DataTable } from './table.tsx';

interface FinderProps<T> extends Pick<PageProps, 'keeper' | 'navigate' | 'query'> {
  /** The page that it is on. */
  readonly page: ConsolePageName;
  readonly caption: string;
  /** Label of the search box. */
  readonly label: string;
  readonly list: List<T>;
  readonly columns: readonly Column<T>[];
  readonly keyOf: (item: T) => string;
  readonly nameOf: (item: T) => string;
  readonly textsOf: Shape<T>['textsOf'];
  readonly chips: Shape<T>['chips'];
  readonly compare: Shape<T>['compare'];
  /** `2 API keys` */
  readonly countOf: (count: number) => string;
  readonly actions?: readonly BulkAction<T>[];
  /** Looks up exactly what was typed, for when not everything could be loaded. */
  readonly lookUp?: (typed: string, signal: AbortSignal) => Promise<T>;
  /** Shown if there is nothing at all. */
  readonly empty: Child;
  /** Further filters. */
  readonly beside?: Child;
}

/** Rows shown at first, and added by the button for more. */
const rowsAtATime = 100;

export function Finder<T>(props: FinderProps<T>) {
  const { keeper, page, list, columns, keyOf, nameOf, textsOf, chips, compare, countOf, actions = [] } = props;
  const [view, arrange, flush] = useArrangement(props);
  const kept = keptIn<number>(keeper, `${page} rows`);
  const [rows, setRows] = useState(() => kept.get() ?? rowsAtATime);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useMinutes();
  const sorts = new Map(columns.flatMap(({ title, sort }) => (sort ? [[columnId(title), sort] as const] : [])));
  const found = arranged(list.items, { textsOf, nameOf, chips, sorts, compare }, view, Date.now());
  const looked = useLookUp(props, view.sought, found.length === 0);
  const shown = looked ? [looked] : found;
  const chosen = shown.filter((item) => selected.has(keyOf(item)));
  const isNarrowed = view.sought.trim() !== '' || view.chips.length > 0;
  const showMore = (): void => {
    setRows(rows + rowsAtATime);
    kept.set(rows + rowsAtATime);
    if (found.length <= rows + rowsAtATime && list.hasMore) list.more();
  };
  // Until everything is there, narrowing finds only what is loaded.
  const isPartial = list.hasMore && list.items.length >= mostSearched;
  const items = shown.slice(0, rows);
  const hasMore = shown.length > rows || isPartial;
  return (
    // One element: of several, hono/jsx moves the first when only this is rendered again, and the search loses focus.
    <div>
      <FilterBar {...{ view, arrange, flush, columns, chips }} label={props.label} beside={props.beside} />
      {isPartial && (
        <p key="partial" data-note>
          Only the first {countText(list.items.length)} are loaded, and searched here. Show more to load the rest
          {props.lookUp && ', or type a whole name, which is looked up at the service'}.
        </p>
      )}
      {chosen.length > 0 && (
        <BulkBar
          key="bulk"
          {...{ nameOf, countOf, actions }}
          items={chosen}
          onChanged={list.again}
          onClear={() => setSelected(new Set())}
        />
      )}
      <DataTable
        key="table"
        caption={props.caption}
        columns={columns}
        list={{ ...list, items, hasMore, more: list.is === 'failed' ? list.more : showMore }}
        keyOf={keyOf}
        total={items.length < list.items.length ? list.items.length : undefined}
        sorting={{ now: view.sort, onSort: (by) => arrange({ ...view, sort: nextSort(view.sort, by) }) }}
        selection={actions.length > 0 ? { keys: selected, nameOf, onChange: setSelected } : undefined}
        empty={isNarrowed && list.items.length > 0 ? <Nothing view={view} arrange={arrange} /> : props.empty}
      />
    </div>
  );
}

type Arrange = (next: Arrangement, isTyping?: boolean) => void;

/** Milliseconds after which typed text goes into the address; browsers limit how often that may change. */
const typingPause = 200;

/** The arrangement, which is written into the address; `flush` writes what was typed at once. */
function useArrangement<T>({ page, query, navigate }: FinderProps<T>): [Arrangement, Arrange, () => void] {
  const [view, setView] = useState(() => arrangementOf(query));
  // Addresses that were written from here, since the last one that was not.
  const written = useRef(new Set([textOf(view)]));
  const pending = useRef<{ timer: number; next: Arrangement }>(null);
  const write = (next: Arrangement): void => {
    pending.current = null;
    written.current?.add(textOf(next));
    navigate(hrefTo(page, {}, { ...Object.fromEntries(query), ...queryOf(next) }), 'replace');
  };
  const latest = useRef(write);
  latest.current = write;
  const inAddress = textOf(arrangementOf(query));
  useEffect(() => {
    // Another address, such as that of a link to the whole list.
    if (written.current?.has(inAddress)) return;
    written.current = new Set([inAddress]);
    setView(arrangementOf(query));
  }, [inAddress]);
  useEffect(() => () => window.clearTimeout(pending.current?.timer), []);
  const arrange: Arrange = (next, isTyping = false) => {
    setView(next);
    window.clearTimeout(pending.current?.timer);
    if (!isTyping) return latest.current?.(next);
    pending.current = { timer: window.setTimeout(() => latest.current?.(next), typingPause), next };
  };
  const flush = (): void => {
    if (!pending.current) return;
    window.clearTimeout(pending.current.timer);
    latest.current?.(pending.current.next);
  };
  return [view, arrange, flush];
}

function textOf(view: Arrangement): string {
  return JSON.stringify(queryOf(view));
}

/** Renders again every minute, since times are shown relative to now. */
function useMinutes(): void {
  const [, setMinute] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setMinute((minute) => minute + 1), 60_000);
    return () => clearInterval(timer);
  }, []);
}

/** The item that the service has under exactly the typed name, if not everything is loaded and nothing else matches. */
function useLookUp<T>({ list, lookUp }: FinderProps<T>, sought: string, isMissing: boolean): T | undefined {
  const wanted = list.hasMore && list.is === 'ready' && isMissing && lookUp ? sought.trim() : '';
  const answer = useAnswer<T | undefined>(
    async (signal) => {
      if (wanted === '') return undefined;
      await new Promise((done) => setTimeout(done, typingPause));
      return signal.aborted ? undefined : lookUp?.(wanted, signal).catch(() => undefined);
    },
    [wanted],
  );
  return wanted !== '' && answer.is === 'ready' ? answer.value : undefined;
}

interface FilterBarProps<T> extends Pick<FinderProps<T>, 'columns' | 'chips' | 'label' | 'beside'> {
  readonly view: Arrangement;
  readonly arrange: Arrange;
  readonly flush: () => void;
}

function FilterBar<T>({ view, arrange, flush, columns, chips, label, beside }: FilterBarProps<T>) {
  const sortable = columns.filter(({ sort }) => sort).map(({ title }) => title);
  return (
    <search data-finder>
      <input
        type="search"
        aria-label={label}
        aria-keyshortcuts="/"
        placeholder={label}
        size={label.length}
        value={view.sought}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        onInput={(event: Event) => arrange({ ...view, sought: (event.target as HTMLInputElement).value }, true)}
        onBlur={flush}
        onKeyDown={({ key }: KeyboardEvent) => {
          if (key === 'Enter') flush();
        }}
      />
      {chips.length > 0 && (
        <fieldset data-chips>
          <legend data-spoken>Show only</legend>
          {chips.map((chip) => (
            <ChipButton key={chip.id} {...{ chip, view, arrange }} />
          ))}
        </fieldset>
      )}
      {beside}
      <SortSelect {...{ view, arrange, sortable }} />
    </search>
  );
}

interface ChipButtonProps<T> extends Pick<FilterBarProps<T>, 'view' | 'arrange'> {
  readonly chip: Chip<T>;
}

function ChipButton<T>({ chip: { id, label }, view, arrange }: ChipButtonProps<T>) {
  return (
    <button
      type="button"
      data-kind="chip"
      aria-pressed={view.chips.includes(id) ? 'true' : 'false'}
      onClick={() => arrange({ ...view, chips: toggled(view.chips, id) })}
    >
      {label}
    </button>
  );
}

interface SortSelectProps<T> extends Pick<FilterBarProps<T>, 'view' | 'arrange'> {
  /** Titles of the columns. */
  readonly sortable: readonly string[];
}

/** For narrow windows, where the table has no headings. */
function SortSelect<T>({ view, arrange, sortable }: SortSelectProps<T>) {
  const id = useId();
  const { sort } = view;
  return (
    <span data-sort-select>
      <label for={id}>Sort by</label>
      <select
        id={id}
        value={sort ? `${sort.isDown ? '-' : ''}${sort.by}` : ''}
        onChange={(event: Event) => {
          const { value } = event.target as HTMLSelectElement;
          const next = value === '' ? undefined : { by: value.replace(/^-/, ''), isDown: value.startsWith('-') };
          arrange({ ...view, sort: next });
        }}
      >
        <option value="">Default</option>
        {sortable.flatMap((title) => [
          <option key={`up ${title}`} value={columnId(title)}>
            {title}, ascending
          </option>,
          <option key={`down ${title}`} value={`-${columnId(title)}`}>
            {title}, descending
          </option>,
        ])}
      </select>
    </span>
  );
}

interface NothingProps {
  readonly view: Arrangement;
  readonly arrange: Arrange;
}

function Nothing({ view, arrange }: NothingProps) {
  const sought = view.sought.trim();
  return (
    <>
      <p>
        {sought === '' ? 'Nothing here matches these filters.' : `Nothing here matches “${sought}”`}
        {sought !== '' && (view.chips.length > 0 ? ' with these filters.' : '.')}
      </p>
      <button type="button" data-kind="quiet" onClick={() => arrange({ ...view, sought: '', chips: [] })}>
        Show everything
      </button>
    </>
  );
}
