// Counts of encrypts, decrypts and denials over time, from the activity log. What was counted stays in memory per store,
// so that a repeat reads only the records since.
import { countIn, type TimeRangeName, timeAxis, timeRanges } from '../model/time-ranges.ts';
import type { ActivityFilter, Store } from '../store/port.ts';

/** Maximum number of records per series and count; of more only the newest are counted. */
export const mostCounted = 10_000;
const atATime = 1_000;
const hour = 3_600_000;
/** Smallest bucket; it divides all others. */
const bucket = timeRanges.hour.bucket;
/** Records are counted from this long before now. */
const kept = timeRanges.week.length + timeRanges.week.bucket;

interface Series {
  readonly filter: ActivityFilter;
  /** Counts by the start of their bucket. */
  counts: Map<number, number>;
  /** Records up to this sequence number are counted. */
  seen: number;
  /** Start of what is counted; undefined if all is. */
  since: number | undefined;
}

const seriesNames = ['encrypts', 'decrypts', 'denials'] as const;
type SeriesName = (typeof seriesNames)[number];

const filters: Readonly<Record<SeriesName, ActivityFilter>> = {
  encrypts: { action: 'keyring.encrypt', valid: true },
  decrypts: { action: 'keyring.decrypt', valid: true },
  denials: { valid: false },
};

interface UseOverTime extends Readonly<Record<SeriesName, number[]>> {
  readonly from: number;
  readonly bucket: number;
  readonly cut: { readonly name: SeriesName; readonly since: number }[];
  readonly deniedLastHour: number;
  readonly deniedBefore: number;
  readonly countedBefore: number;
}

class UseCounts {
  readonly #store: Store;
  readonly #series: Readonly<Record<SeriesName, Series>>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: Store) {
    const begin = (name: SeriesName): Series => ({
      filter: filters[name],
      counts: new Map(),
      seen: 0,
      since: undefined,
    });
    this.#store = store;
    this.#series = { encrypts: begin('encrypts'), decrypts: begin('decrypts'), denials: begin('denials') };
  }

  /** Counts the records since the last time, one request after the other. */
  async over(range: TimeRangeName, now: number): Promise<UseOverTime> {
    const counted = this.#last.then(() => this.#count(now));
    this.#last = counted.catch(() => undefined);
    await counted;
    return this.#shown(range, now);
  }

  async #count(now: number): Promise<void> {
    const { activityCount } = this.#store.status();
    for (const name of seriesNames) await this.#countOne(this.#series[name], activityCount, now);
  }

  async #countOne(series: Series, head: number, now: number): Promise<void> {
    // A failed write may have rolled records back.
    if (series.seen > head) Object.assign(series, { counts: new Map(), seen: 0, since: undefined });
    if (series.seen === head) return;
    const start = now - kept;
    const filter = { ...series.filter, start, end: now + hour, afterSeq: series.seen };
    const fresh = new Map<number, number>();
    let count = 0;
    let oldest = now;
    let after: number | undefined = head + 1;
    while (after !== undefined && count < mostCounted) {
      const page = await this.#store.activity.search(filter, { limit: atATime, after });
      for (const { createdAt } of page.items) {
        const at = Math.floor(createdAt / bucket) * bucket;
        fresh.set(at, (fresh.get(at) ?? 0) + 1);
        oldest = createdAt;
      }
      count += page.items.length;
      after = page.next;
    }
    const isCut = after !== undefined;
    for (const [at, before] of isCut ? [] : series.counts) {
      if (at >= start) fresh.set(at, (fresh.get(at) ?? 0) + before);
    }
    Object.assign(series, { counts: fresh, seen: head, ...(isCut && { since: oldest }) });
  }

  #shown(range: TimeRangeName, now: number): UseOverTime {
    const axis = timeAxis(timeRanges[range], now);
    const [from = now] = axis.starts;
    const { encrypts, decrypts, denials } = this.#series;
    return {
      from,
      bucket: axis.bucket,
      encrypts: countIn(axis, encrypts.counts),
      decrypts: countIn(axis, decrypts.counts),
      denials: countIn(axis, denials.counts),
      cut: seriesNames.flatMap((name) => {
        const { since } = this.#series[name];
        return since !== undefined && since > from ? [{ name, since }] : [];
      }),
      ...deniedOf(denials, now),
    };
  }
}

/** Denials of the last hour, and of the rest of the day as far as they are counted. */
function deniedOf({ counts, since }: Series, now: number) {
  const day = now - 24 * hour;
  const begin = Math.max(day, since ?? day);
  let deniedLastHour = 0;
  let deniedBefore = 0;
  for (const [at, count] of counts) {
    if (at + bucket > now - hour) deniedLastHour += count;
    else if (at + bucket > begin) deniedBefore += count;
  }
  return { deniedLastHour, deniedBefore, countedBefore: Math.max(0, now - hour - begin) };
}

const known = new WeakMap<Store, UseCounts>();

export function useOverTime(store: Store, range: TimeRangeName, now: number): Promise<UseOverTime> {
  const counts = known.get(store) ?? new UseCounts(store);
  known.set(store, counts);
  return counts.over(range, now);
}
