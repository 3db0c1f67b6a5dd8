// The numbers of the overview's chart: encrypts, decrypts and denials of a range of time, each counted as far back as is affordable.
import type { CallOptions, Client } from '../../client/client.ts';
import { type ActivityFilters, newestActivity } from '../activity/newest.ts';
import type { ChartSeries } from './chart-shape.ts';
import { countIn, type TimeAxis, type TimeRange, timeAxis } from './time-buckets.ts';

export interface OverviewNumbers {
  readonly axis: TimeAxis;
  readonly series: readonly ChartSeries[];
  /** The series of which only the newest were counted, and back to when. */
  readonly cut: readonly Cut[];
}

export interface Cut {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** Of each series: one page, as large as the appliance gives one. */
export const mostOfEach = 10_000;

const kinds: readonly (readonly [name: string, filters: ActivityFilters])[] = [
  ['Encrypts', { action: 'keyring.encrypt', valid: true }],
  ['Decrypts', { action: 'keyring.decrypt', valid: true }],
  ['Denials', { valid: false }],
];

export async function overviewNumbers(
  searchActivity: Client['searchActivity'],
  range: TimeRange,
  now: number,
  options: CallOptions = {},
): Promise<OverviewNumbers> {
  const axis = timeAxis(range, now);
  const time = { start: axis.starts[0] ?? now, end: axis.end - 1 };
  const found = await Promise.all(
    kinds.map(([, filters]) =>
      newestActivity(searchActivity, { ...filters, ...time }, { ...options, most: mostOfEach }),
    ),
  );
  return {
    axis,
    series: kinds.map(([name], index) => ({
      name,
      counts: countIn(
        axis,
        (found[index]?.records ?? []).map(({ createdAt }) => createdAt),
      ),
    })),
    cut: kinds.flatMap(([name], index) => {
      const newest = found[index];
      return newest?.isCut ? [{ name, since: newest.records.at(-1)?.createdAt ?? now }] : [];
    }),
  };
}
