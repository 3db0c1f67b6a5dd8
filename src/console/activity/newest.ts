// The newest records of a search, page by page, up to a bound: what a chart or a count may ask of a log that grows without end.
import type { AnswerTo, CallOptions, Client, InputOf } from '../../client/client.ts';

export type ActivityRecord = AnswerTo<'searchActivity'>['data'][number];
export type ActivityFilters = Omit<InputOf<'searchActivity'>, 'cursor' | 'limit'>;

export interface Newest {
  /** The newest first. */
  readonly records: readonly ActivityRecord[];
  /** Whether there are older ones that were not fetched. */
  readonly isCut: boolean;
}

/** The most that the appliance gives at a time. */
const pageSize = 10_000;

export interface NewestOptions extends CallOptions {
  /** The most records to fetch. */
  readonly most: number;
}

export async function newestActivity(
  searchActivity: Client['searchActivity'],
  filters: ActivityFilters,
  { most, ...options }: NewestOptions,
): Promise<Newest> {
  const records: ActivityRecord[] = [];
  let cursor: string | undefined;
  for (;;) {
    const limit = Math.min(pageSize, most - records.length);
    const page = await searchActivity({ ...filters, limit, ...(cursor !== undefined && { cursor }) }, options);
    for (const record of page.data) records.push(record);
    cursor = page.pagination.nextCursor;
    if (cursor === undefined) return { records, isCut: false };
    if (records.length >= most) return { records, isCut: true };
  }
}
