// What is new in a search that answers the newest first, each record once, however many came since the last look.

export interface Found {
  readonly id: string;
}

export interface FoundPage<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor?: string };
}

export interface Newcomers<T> {
  /** What came since the last look, the oldest first. */
  look(): Promise<readonly T[]>;
  /** What was there at the beginning, the newest `count`, the oldest first. */
  readonly before: readonly T[];
}

/** As many ids are remembered: the last record seen may be gone when the next look comes, as after a restore. */
const remembered = 10_000;
const firstPage = 100;
const laterPages = 1000;

export async function newcomers<T extends Found>(
  search: (page: { readonly limit: number; readonly cursor?: string }) => Promise<FoundPage<T>>,
  count: number,
): Promise<Newcomers<T>> {
  const first = (await search({ limit: Math.max(count, firstPage) })).data;
  // Ids of one kind are in order of time.
  const oldest = first.at(-1)?.id ?? '';
  const known = new Set(first.map(({ id }) => id).toReversed());

  function remember(records: readonly T[]): void {
    for (const { id } of records) known.add(id);
    for (const id of known) {
      if (known.size <= remembered) return;
      known.delete(id);
    }
  }

  async function look(): Promise<readonly T[]> {
    const fresh: T[] = [];
    let hasMet = known.size === 0;
    let cursor: string | undefined;
    do {
      const page = await search({
        limit: cursor === undefined ? firstPage : laterPages,
        ...(cursor !== undefined && { cursor }),
      });
      const met = page.data.findIndex(({ id }) => known.has(id));
      fresh.push(...page.data.slice(0, met < 0 ? undefined : met));
      hasMet ||= met >= 0;
      // Where nothing that was seen is left, the end is where everything is older.
      if (met >= 0 || (page.data.length > 0 && page.data.every(({ id }) => id < oldest))) break;
      cursor = page.pagination.nextCursor;
    } while (cursor !== undefined);
    const shown = (hasMet ? fresh : fresh.filter(({ id }) => id > oldest)).toReversed();
    remember(shown);
    return shown;
  }

  return { look, before: count === 0 ? [] : first.slice(0, count).toReversed() };
}
