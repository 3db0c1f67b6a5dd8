// ActivityReads reads the activity log of a store in service: results are returned once they are durable, and a faulty
// segment is reported to the segment watch.
import type { ActivityFilter, ActivityRecord, ChainedActivity, StoreActivity } from '../port.ts';
import type { Page, PageRequest } from '../sql.ts';
import type { ActivityLog } from './activity-log.ts';
import type { SegmentWatch } from './segment-watch.ts';

/** A log in memory, whose end may not be durable yet. */
interface CurrentActivity {
  readonly activity: ActivityLog;
  /** Resolves when everything now in the log is durable; undefined if it already is. */
  durable(): Promise<void> | undefined;
}

export class ActivityReads implements StoreActivity {
  readonly #watch: Pick<SegmentWatch, 'met'>;
  readonly #current: () => Promise<CurrentActivity>;

  /** `current` throws while nothing is in service. */
  constructor(watch: Pick<SegmentWatch, 'met'>, current: () => Promise<CurrentActivity>) {
    this.#watch = watch;
    this.#current = current;
  }

  search(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>> {
    return this.#durably((activity) => activity.search(filter, page));
  }

  find(id: string): Promise<ActivityRecord | undefined> {
    return this.#durably((activity) => activity.find(id));
  }

  /** Reads again if the log was replaced during a failed read, or has other segments now. */
  async #durably<R>(read: (activity: ActivityLog) => Promise<R>): Promise<R> {
    const current = await this.#current();
    const { segments } = current.activity;
    try {
      const found = await read(current.activity);
      await current.durable();
      return found;
    } catch (error) {
      const { activity, durable } = await this.#current();
      if (activity === current.activity && activity.segments === segments) throw this.#watch.met(error);
      const found = await this.noting(() => read(activity));
      await durable();
      return found;
    }
  }

  async *read(fromSeq: number): AsyncIterable<ChainedActivity> {
    const current = await this.#current();
    const end = current.activity.count;
    await current.durable();
    try {
      for await (const chained of current.activity.read(fromSeq)) {
        if (chained.record.seq > end) return;
        yield chained;
      }
    } catch (error) {
      throw this.#watch.met(error);
    }
  }

  /** Reports a faulty segment found by `read` to the segment watch. */
  async noting<R>(read: () => Promise<R>): Promise<R> {
    try {
      return await read();
    } catch (error) {
      throw this.#watch.met(error);
    }
  }
}
