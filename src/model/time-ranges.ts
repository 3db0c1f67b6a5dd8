// Time ranges of the overview, divided into buckets in which requests are counted.

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

/** Start of the smallest bucket that `now` is in. */
export function bucketNow(now: number): number {
  return Math.floor(now / timeRanges.hour.bucket) * timeRanges.hour.bucket;
}

/** Sums in each bucket of the counts, given by their times; those outside are ignored. */
export function countIn({ starts, bucket }: TimeAxis, counted: Iterable<readonly [time: number, count: number]>) {
  const counts = starts.map(() => 0);
  const [first] = starts;
  if (first === undefined) return counts;
  for (const [time, more] of counted) {
    const index = Math.floor((time - first) / bucket);
    const count = counts[index];
    if (count !== undefined) counts[index] = count + more;
  }
  return counts;
}
