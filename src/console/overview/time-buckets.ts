// Times put into buckets of equal length that end with now: the last hour, day or week.

export const timeRanges = {
  hour: { label: 'Last hour', length: 3_600_000, bucket: 120_000 },
  day: { label: 'Last 24 hours', length: 86_400_000, bucket: 3_600_000 },
  week: { label: 'Last 7 days', length: 604_800_000, bucket: 21_600_000 },
} as const satisfies Readonly<Record<string, TimeRange>>;

export type TimeRangeName = keyof typeof timeRanges;

/** All in milliseconds. */
export interface TimeRange {
  readonly label: string;
  readonly length: number;
  readonly bucket: number;
}

export interface TimeAxis {
  /** Where each bucket begins, the oldest first. */
  readonly starts: readonly number[];
  readonly bucket: number;
  /** The moment after the last bucket. */
  readonly end: number;
}

/** Buckets that lie at whole multiples of their length in UTC, so that an hour begins at the full hour. `now` lies in the last one. */
export function timeAxis({ length, bucket }: TimeRange, now: number): TimeAxis {
  const last = Math.floor(now / bucket) * bucket;
  const count = Math.round(length / bucket);
  const starts = Array.from({ length: count }, (_, index) => last - (count - 1 - index) * bucket);
  return { starts, bucket, end: last + bucket };
}

/** How many of the times lie in each bucket; those outside all of them count nowhere. */
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
