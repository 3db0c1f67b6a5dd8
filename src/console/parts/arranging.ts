// Arrangement is how a list is shown: the text searched for, the chips that are on, and the column sorted by. It is
// kept in the page's address, and applied to the items that are loaded. Pure, so that it is tested without a browser.

/** Null comes last, whichever way the column is sorted. */
export type SortValue = string | number | null;

export interface Chip<T> {
  /** Name in the address. */
  readonly id: string;
  readonly label: string;
  /** Chips of one group are alternatives; an item has to match every group that has a chip on. */
  readonly group?: string;
  readonly has: (item: T, now: number) => boolean;
}

export interface Sort {
  readonly by: string;
  readonly isDown: boolean;
}

export interface Arrangement {
  readonly sought: string;
  /** Ids of the chips that are on. */
  readonly chips: readonly string[];
  /** Absent: the list's own order. */
  readonly sort?: Sort | undefined;
}

/** A list's texts to search, its chips, and its orders. */
export interface Shape<T> {
  readonly textsOf: (item: T) => readonly string[];
  /** The text that the list shows it under: what is searched for there comes first. */
  readonly nameOf: (item: T) => string;
  readonly chips: readonly Chip<T>[];
  /** Values to sort by, by the id of their column. */
  readonly sorts: ReadonlyMap<string, (item: T) => SortValue>;
  /** The list's own order: what people look for most comes first. */
  readonly compare: (one: T, other: T) => number;
}

export function arrangementOf(query: URLSearchParams): Arrangement {
  const chips = (query.get('is') ?? '').split(',').filter((id) => id !== '');
  const sort = query.get('sort') ?? '';
  return {
    sought: query.get('q') ?? '',
    chips,
    sort: sort === '' ? undefined : { by: sort.replace(/^-/, ''), isDown: sort.startsWith('-') },
  };
}

/** The parts of an address that `arrangementOf` reads; undefined for those that are not needed. */
export function queryOf({
  sought,
  chips,
  sort,
}: Arrangement): Readonly<Record<'q' | 'is' | 'sort', string | undefined>> {
  return {
    q: sought.trim() === '' ? undefined : sought,
    is: chips.length === 0 ? undefined : chips.join(','),
    sort: sort && `${sort.isDown ? '-' : ''}${sort.by}`,
  };
}

/** Sorts by the column upwards, then downwards, then not at all. */
export function nextSort(sort: Sort | undefined, by: string): Sort | undefined {
  if (sort?.by !== by) return { by, isDown: false };
  return sort.isDown ? undefined : { by, isDown: true };
}

export function toggled(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];
}

/** The items that match, in the chosen order. Every word typed has to be in one of an item's texts. */
export function arranged<T>(
  items: readonly T[],
  shape: Shape<T>,
  { sought, chips, sort }: Arrangement,
  now: number,
): T[] {
  const words = sought
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const on = shape.chips.filter(({ id }) => chips.includes(id));
  const groupOf = ({ id, group = id }: Chip<T>): string => group;
  const groups = [...new Set(on.map(groupOf))].map((group) => on.filter((chip) => groupOf(chip) === group));
  const found = items.filter((item) => {
    if (!groups.every((group) => group.some(({ has }) => has(item, now)))) return false;
    const text = words.length === 0 ? '' : shape.textsOf(item).join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const keyOf = sort && shape.sorts.get(sort.by);
  if (!keyOf) return nearestFirst(found, words, shape);
  const keyed = found.map((item) => ({ item, value: keyOf(item) }));
  keyed.sort((one, other) => compareValues(one.value, other.value, sort.isDown) || shape.compare(one.item, other.item));
  return keyed.map(({ item }) => item);
}

/** Items of exactly that name come first, then those that have the words in their name, then the rest. */
function nearestFirst<T>(found: T[], words: readonly string[], { nameOf, compare }: Shape<T>): T[] {
  if (words.length === 0) return found.sort(compare);
  const sought = words.join(' ');
  const rank = (item: T): number => {
    const name = nameOf(item).toLowerCase();
    return name === sought ? 0 : words.every((word) => name.includes(word)) ? 1 : 2;
  };
  const ranked = found.map((item) => ({ item, rank: rank(item) }));
  ranked.sort((one, other) => one.rank - other.rank || compare(one.item, other.item));
  return ranked.map(({ item }) => item);
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Ascending; numbers in names count as numbers. */
export function compareTexts(one: string, other: string): number {
  return collator.compare(one, other);
}

function compareValues(one: SortValue, other: SortValue, isDown: boolean): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const order =
    typeof one === 'number' && typeof other === 'number' ? one - other : compareTexts(String(one), String(other));
  return isDown ? -order : order;
}
