// Reading the activity log of a store that serves: what is found is answered once it is durable, and a segment that is
// met at fault is known to be from then on.
import type { ActivityFilter, ActivityRecord, ChainedActivity } from '../port.ts';
import type { Page, PageRequest } from '../sql.ts';
import type { ActivityLog } from './activity-log.ts';
import type { SegmentWatch } from './segment-watch.ts';

/** A log as it is in memory, of which the end may not be durable yet. */
interface CurrentActivity {
  readonly activity: ActivityLog;
  /** Resolves when everything in it now is durable; undefined when it is. */
  durable(): Promise<void> | undefined;
}

export class ActivityReads {
  readonly #watch: Pick<SegmentWatch, 'met'>;
  readonly #current: () => Promise<CurrentActivity>;

  /** `current` throws while nothing is in service. */
  constructor(watch: Pick<SegmentWatch, 'met'>, current: () => Promise<CurrentActivity>) {
    this.#watch = watch;
    this.#current = current;
  }

  async search(filter: ActivityFilter, page: PageRequest): Promise<Page<ActivityRecord>> {
    const current = await this.#current();
    const found = await this.noting(() => current.activity.search(filter, page));
    await current.durable();
    return found;
  }

  async find(id: string): Promise<ActivityRecord | undefined> {
    const current = await this.#current();
    const found = await this.noting(() => current.activity.find(id));
    await current.durable();
    return found;
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

  /** A segment that somebody finds at fault is known to be from then on. */
  async noting<R>(read: () => Promise<R>): Promise<R> {
    try {
      return await read();
    } catch (error) {
      throw this.#watch.met(error);
    }
  }
}
