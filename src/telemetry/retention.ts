// Retention drops activity older than the operator wants to keep: whole closed segments, from the beginning of each
// tenant's log. The drop is first recorded in the same log, and only records that have arrived at every streaming
// target are dropped.
import { isDeepStrictEqual } from 'node:util';
import { activityRecord } from '../core/activity.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { reasonOf } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Aging } from '../storage/aging.ts';
import type { ServedTenant, Tenants } from '../storage/served-tenants.ts';
import { droppedFiles } from '../store/activity/dropped.ts';
import type { DroppedActivity, StoreStatus } from '../store/port.ts';
import type { Streaming } from './streaming/streaming.ts';

export interface RetentionSettings {
  /** Milliseconds that activity is kept. */
  readonly keep: number;
  /** Milliseconds from the start to the first round, and between rounds. */
  readonly firstAfter?: number;
  readonly every?: number;
}

export interface RetentionStatus {
  /** Seconds that activity is kept. */
  readonly seconds: number;
  /** Older records of all tenants that stay until they have arrived at the streaming targets. */
  readonly waitingRecords: number;
}

interface RetentionDeps {
  readonly tenants: Pick<Tenants, 'all'>;
  readonly world: World;
  readonly aging: Pick<Aging, 'now'>;
  readonly streaming: Pick<Streaming, 'arrived'>;
  readonly onEvent: ((event: ApplianceEvent) => void) | undefined;
  /** Whether writes that can wait must wait. */
  readonly mustWait: () => boolean;
}

const minute = 60_000;

export class Retention {
  readonly #deps: RetentionDeps;
  #settings: RetentionSettings | undefined;
  /** For each tenant id, the record up to which the log has recorded a drop. */
  readonly #recorded = new Map<string, number>();
  /** For each tenant id, the records that must arrive first. */
  readonly #waiting = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  /** Only the last start continues. */
  #starts = 0;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** Without settings everything is kept. */
  constructor(deps: RetentionDeps, settings: RetentionSettings | undefined) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** New settings are applied within a minute. */
  set settings(settings: RetentionSettings | undefined) {
    if (isDeepStrictEqual(this.#settings, settings)) return;
    this.#settings = settings;
    this.#waiting.clear();
    if (this.#timer) this.start();
  }

  /** Undefined if everything is kept. */
  get status(): RetentionStatus | undefined {
    if (!this.#settings) return undefined;
    const waitingRecords = [...this.#waiting.values()].reduce((sum, records) => sum + records, 0);
    return { seconds: Math.round(this.#settings.keep / 1000), waitingRecords };
  }

  start(): void {
    const { firstAfter = minute, every = 60 * minute } = this.#settings ?? {};
    const start = ++this.#starts;
    const next = (after: number): void => {
      if (this.#isClosed || start !== this.#starts) return;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => {
        this.#running = this.#running.then(() => this.#round()).then(() => next(every));
      }, after).unref();
    };
    next(firstAfter);
  }

  /** Waits for the round under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #round(): Promise<void> {
    for (const tenant of this.#deps.tenants.all) {
      if (this.#isClosed || !this.#settings || this.#deps.mustWait()) return;
      try {
        await this.#dropOf(tenant, this.#settings.keep);
      } catch (cause) {
        const message = `old activity of ${tenant.record.name} could not be dropped: ${reasonOf(cause)}`;
        this.#deps.onEvent?.({ level: 'warn', message, cause });
      }
    }
  }

  async #dropOf(tenant: ServedTenant, keep: number): Promise<void> {
    const { record, handle } = tenant;
    const { store } = handle;
    const { aging, streaming, onEvent, world } = this.#deps;
    const before = (await aging.now()) - keep;
    const due = store.droppable(before, Number.POSITIVE_INFINITY);
    const { activityDropped: already, activityFaults: faults } = store.status();
    const may = due && store.droppable(before, streaming.arrived(record.id));
    this.#noteWaiting(tenant, due ? due.seq - (may?.seq ?? already?.seq ?? 0) : 0);
    if (!may) return;
    if (this.#recorded.get(record.id) !== may.seq) {
      const props = propsOf(may, already, faults);
      const activity = activityRecord(world, { keyid: localCaller.id, action: 'system.retention', props });
      await store.transaction((tx) => tx.record(activity));
      this.#recorded.set(record.id, may.seq);
    }
    await store.dropActivity(may.seq);
    const from = (already?.seq ?? 0) + 1;
    const until = new Date(may.until).toISOString();
    const message = `retention dropped activity of ${record.name}: records ${from} to ${may.seq}, the last of ${until}`;
    onEvent?.({ level: 'info', message });
  }

  /** Reports a delay once. */
  #noteWaiting({ record }: ServedTenant, records: number): void {
    const isKnown = this.#waiting.has(record.id);
    if (records === 0) {
      this.#waiting.delete(record.id);
      return;
    }
    this.#waiting.set(record.id, records);
    if (isKnown) return;
    const message = `old activity of ${record.name} is kept until it has arrived where it is streamed to: ${records} records`;
    this.#deps.onEvent?.({ level: 'warn', message });
  }
}

/** Names files that were missing or changed at the time: they cannot be inspected any more. */
function propsOf(
  may: DroppedActivity,
  already: DroppedActivity | undefined,
  faults: StoreStatus['activityFaults'],
): Readonly<Record<string, unknown>> {
  const names = faults.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
  const faulty = droppedFiles(names, may);
  return {
    operation: 'drop',
    records: may.seq - (already?.seq ?? 0),
    through: may.seq,
    until: new Date(may.until).toISOString(),
    ...(faulty.length > 0 && { faulty: faulty.slice(0, 100), faultyCount: faulty.length }),
  };
}
