// Numbers for the overview, counted from the activity log as far back as is affordable: encrypts, decrypts and denials
// over time, and how close each ring is to its rotation.
import type { AnswerTo, CallOptions, Client } from '../../client/client.ts';
import { type ActivityFilters, newestActivity } from '../activity/records.ts';
import { idTime, type RingTraits } from '../text.ts';
import type { ChartSeries } from './chart-shape.ts';

export interface OverviewNumbers {
  readonly axis: TimeAxis;
  readonly series: readonly ChartSeries[];
  /** Series of which only the newest records were counted, each with the start of its count. */
  readonly cut: readonly Cut[];
}

interface Cut {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** Maximum number of records per series: one page of the largest size. */
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

export const timeRanges = {
  hour: { label: 'Last hour', length: 3_600_000, bucket: 120_000 },
  day: { label: 'Last 24 hours', length: 86_400_000, bucket: 3_600_000 },
  week: { label: 'Last 7 days', length: 604_800_000, bucket: 21_600_000 },
} as const satisfies Readonly<Record<string, TimeRange>>;

export type TimeRangeName = keyof typeof timeRanges;

/** Milliseconds. */
interface TimeRange {
  readonly label: string;
  readonly length: number;
  readonly bucket: number;
}

export interface TimeAxis {
  /** Start of each bucket, oldest first. */
  readonly starts: readonly number[];
  readonly bucket: number;
  /** End of the last bucket. */
  readonly end: number;
}

/** Buckets aligned to multiples of their length in UTC, so that hours start on the hour. `now` is in the last one. */
export function timeAxis({ length, bucket }: TimeRange, now: number): TimeAxis {
  const last = Math.floor(now / bucket) * bucket;
  const count = Math.round(length / bucket);
  const starts = Array.from({ length: count }, (_, index) => last - (count - 1 - index) * bucket);
  return { starts, bucket, end: last + bucket };
}

/** Number of times in each bucket; times outside are ignored. */
export function countIn({ starts, bucket }: TimeAxis, times: Iterable<number>): number[] {
  const counts = starts.map(() => 0);
  const [first] = starts;
  if (first === undefined) return counts;
  for (const time of times) {
    const index = Math.floor((time - first) / bucket);
    const count = counts[index];
    if (count !== undefined) counts[index] = count + 1;
  }
  return counts;
}

type Ring = AnswerTo<'listKeyrings'>['data'][number];

export interface RingRotation {
  readonly ring: string;
  readonly traits?: RingTraits;
  /** Number of encrypts after which the key is rotated. */
  readonly most: number;
  /** Number of encrypts so far; undefined if not counted. */
  readonly served: number | undefined;
  /** Creation time of the active key, in milliseconds since 1970. */
  readonly since: number | undefined;
  /** Age in seconds at which the key is rotated; undefined for no limit. */
  readonly rotateAfter?: number | undefined;
}

export interface Rotations {
  /** Closest to rotation first; those not counted last. */
  readonly rings: readonly RingRotation[];
  /** Whether there are rings that were not examined. */
  readonly isCut: boolean;
}

/** Maximum number of encrypts counted; more would cost more than it tells. */
const mostCounted = 20_000;
const mostRings = 40;
const atATime = 4;

export async function rotations(api: Client, options: CallOptions = {}): Promise<Rotations> {
  const { data, pagination } = await api.listKeyrings({ limit: mostRings }, options);
  const rings: RingRotation[] = [];
  for (let from = 0; from < data.length; from += atATime) {
    const group = data.slice(from, from + atATime).map((ring) => rotationOf(api, ring, options));
    for (const found of await Promise.all(group)) if (found) rings.push(found);
  }
  return { rings: rings.sort((a, b) => shareOf(b) - shareOf(a)), isCut: pagination.hasMore };
}

/** Undefined for a ring that the user may not read. */
async function rotationOf(api: Client, ring: Ring, options: CallOptions): Promise<RingRotation | undefined> {
  const config = await api.getConfig({ ringname: ring.name }, options).catch(forbidden);
  if (!config) return undefined;
  const most = config.config.algos.aes256.maxEncryptCount;
  const since = idTime(ring.activeKey);
  const rotateAfter = config.config.rotateAfter ?? undefined;
  const known = { ring: ring.displayName, traits: ring, most, since, rotateAfter };
  if (most > mostCounted || since === undefined) return { ...known, served: undefined };
  const filters = { ring: ring.name, action: 'keyring.encrypt', valid: true, start: since };
  const found = await newestActivity(api.searchActivity, filters, { ...options, most: mostCounted }).catch(forbidden);
  return { ...known, served: found?.records.filter(({ status }) => status === 200).length };
}

/** From 0 to 1; below 0 if unknown. */
export function shareOf({ served, most }: RingRotation): number {
  return served === undefined ? -1 : Math.min(1, served / most);
}

function forbidden(error: unknown): undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  // The ring may have been deleted since it was listed.
  if (code !== 'forbidden' && code !== 'not-found') throw error;
}
