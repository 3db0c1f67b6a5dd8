// Stream sends the activity of all tenants to one target: a batch of each in turn, with a rest in between, to spare the
// serving thread. A receiver that fails is retried with growing pauses; until it recovers nothing is read, and no
// request waits.
import { setTimeout as wait } from 'node:timers/promises';
import { reasonOf } from '../../errors.ts';
import type { ApplianceEvent } from '../../platform/events.ts';
import type { Tenants } from '../../storage/served-tenants.ts';
import type { Places } from '../../storage/streamed-positions.ts';
import { DeliveryFault, type FaultKind, type Receiver } from './receiver.ts';
import type { ActivityTarget, TargetKind } from './target.ts';
import { TenantCursor } from './tenant-cursor.ts';

/** In milliseconds, except `unconfirmedBytes`. */
export interface Pace {
  /** Between two checks for new records. */
  readonly poll: number;
  /** Between two batches. */
  readonly rest: number;
  /** Between two saves of the places. */
  readonly save: number;
  /** After the first failure; doubled after each further one, up to `longestPause`. */
  readonly pause: number;
  readonly longestPause: number;
  /** Records handed over are confirmed after this idle time, at this age, or at this amount. */
  readonly idle: number;
  readonly unconfirmed: number;
  readonly unconfirmedBytes: number;
  /** Limit for work under way at the end. */
  readonly farewell: number;
}

export const usualPace: Pace = {
  poll: 500,
  rest: 10,
  save: 1000,
  pause: 1000,
  longestPause: 60_000,
  idle: 2000,
  unconfirmed: 5000,
  unconfirmedBytes: 8 * 1024 * 1024,
  farewell: 5000,
};

interface StreamDeps {
  readonly tenants: Pick<Tenants, 'all'>;
  readonly places: Places;
  /** In epoch milliseconds. */
  readonly now: () => number;
  readonly onEvent: (event: ApplianceEvent) => void;
  /** Whether writes that can wait must wait. */
  readonly mustWait: () => boolean;
  readonly pace: Pace;
}

/** Lowest limit of unconfirmed bytes, about a batch. */
const leastUnconfirmed = 128 * 1024;

export interface StreamStatus {
  readonly kind: TargetKind;
  /** The target's name. */
  readonly to: string;
  /** Records of all tenants that have not arrived. */
  readonly lagRecords: number;
  /** Age in seconds of the oldest of them. */
  readonly lagSeconds: number;
  /** Kind and message of the last try's failure; absent if it succeeded. */
  readonly fault?: FaultKind;
  readonly error?: string;
}

export class Stream {
  readonly #target: ActivityTarget;
  readonly #receiver: Receiver;
  readonly #deps: StreamDeps;
  readonly #cursors = new Map<string, TenantCursor>();
  /** Fault of the target as a whole. */
  #fault: DeliveryFault | undefined;
  #failures = 0;
  /** On the monotonic clock of `performance.now()`. */
  #notBefore = 0;
  /** Records handed over but not confirmed. */
  #unconfirmed: { readonly since: number; last: number; bytes: number } | undefined;
  /**
   * Bytes handed over before a confirmation: fewer once a receiver failed to confirm that many. A slow receiver would
   * otherwise be sent for ever more than it can read in time.
   */
  #mostUnconfirmed: number;
  #savedAt = 0;
  #saidUnsaved = false;
  /** Failures already reported since the target last worked. */
  readonly #saidFaults = new Set<string>();
  #running: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();
  #isOver = false;

  constructor(target: ActivityTarget, receiver: Receiver, deps: StreamDeps) {
    this.#target = target;
    this.#receiver = receiver;
    this.#deps = deps;
    this.#mostUnconfirmed = deps.pace.unconfirmedBytes;
  }

  get status(): StreamStatus {
    this.#meetTenants();
    const now = this.#deps.now();
    const lags = [...this.#cursors.values()].map((cursor) => cursor.lag(now));
    const fault = this.#fault ?? [...this.#cursors.values()].find((cursor) => cursor.fault)?.fault;
    return {
      kind: this.#target.kind,
      to: this.#target.name,
      lagRecords: lags.reduce((sum, { records }) => sum + records, 0),
      lagSeconds: Math.round(Math.max(0, ...lags.map(({ ms }) => ms)) / 1000),
      ...(fault && { fault: fault.kind, error: fault.message }),
    };
  }

  /** The last record of a tenant that has arrived. */
  arrived(tenant: string): number {
    return this.#deps.places.of(tenant);
  }

  /** Runs in the background. */
  start(): void {
    this.#running = this.#run().catch((error: unknown) => this.#say('error', `it ended: ${reasonOf(error)}`, error));
  }

  /** Sends what is left to a working receiver, then stops, without waiting long for one that hangs. */
  async close(): Promise<void> {
    this.#closing.abort();
    const done = this.#running.then(() => this.#finish());
    await Promise.race([done, wait(this.#deps.pace.farewell, undefined, { ref: false })]);
    this.#isOver = true;
    this.#receiver.drop();
    await Promise.race([done, wait(1000, undefined, { ref: false })]);
  }

  async #run(): Promise<void> {
    this.#meetTenants();
    void this.#age();
    while (!this.#closing.signal.aborted) {
      const handedOver = await this.#round();
      await this.#saveWhenDue();
      if (!handedOver) await this.#rest(this.#deps.pace.poll);
    }
  }

  async #age(): Promise<void> {
    for (const cursor of [...this.#cursors.values()]) {
      if (this.#closing.signal.aborted) return;
      await cursor.age().catch(() => {});
    }
  }

  /** Sends the records so far, if the receiver works. */
  async #finish(): Promise<void> {
    while (!this.#isOver && !this.#fault && (await this.#round()));
    if (this.#unconfirmed && !this.#isOver) await this.#confirm();
    for (const cursor of this.#cursors.values()) await cursor.rewind();
    this.#receiver.drop();
    await this.#save();
  }

  /** Sends a batch of each tenant that has records; returns whether any was handed over. */
  async #round(): Promise<boolean> {
    this.#meetTenants();
    let handedOver = false;
    for (const cursor of this.#cursors.values()) {
      if (this.#isOver) return false;
      cursor.lag(this.#deps.now());
      if (this.#mayTry() && cursor.isDue(performance.now()) && (await this.#batch(cursor))) {
        handedOver = true;
        await this.#rest(this.#deps.pace.rest);
      }
      await this.#confirmWhenDue();
    }
    return handedOver;
  }

  #mayTry(): boolean {
    return performance.now() >= this.#notBefore;
  }

  async #batch(cursor: TenantCursor): Promise<boolean> {
    const receiver = this.#receiver;
    try {
      await receiver.ready();
      const problem = await cursor.begin(receiver);
      if (problem !== undefined) this.#say('error', problem);
      const batch = await cursor.next();
      if (!batch) return false;
      await receiver.send(batch);
      cursor.handedOver();
      if (receiver.confirm) this.#noteUnconfirmed(batch.records.reduce((sum, { line }) => sum + line.length, 0));
      else this.#acknowledge([cursor]);
      return true;
    } catch (error) {
      await this.#failed(error, cursor);
      return false;
    }
  }

  #noteUnconfirmed(bytes: number): void {
    const now = performance.now();
    this.#unconfirmed ??= { since: now, last: now, bytes: 0 };
    this.#unconfirmed.last = now;
    this.#unconfirmed.bytes += bytes;
  }

  async #confirmWhenDue(): Promise<void> {
    if (!this.#unconfirmed) return;
    const { idle, unconfirmed } = this.#deps.pace;
    const { since, last, bytes } = this.#unconfirmed;
    const now = performance.now();
    if (now - last >= idle || now - since >= unconfirmed || bytes >= this.#mostUnconfirmed) await this.#confirm();
  }

  async #confirm(): Promise<void> {
    try {
      await this.#receiver.confirm?.();
      this.#unconfirmed = undefined;
      this.#acknowledge([...this.#cursors.values()].filter((cursor) => cursor.hasUnconfirmed));
      if (this.status.lagRecords === 0) this.#mostUnconfirmed = this.#deps.pace.unconfirmedBytes;
    } catch (error) {
      await this.#failed(error);
    }
  }

  #acknowledge(cursors: readonly TenantCursor[]): void {
    for (const cursor of cursors) cursor.acknowledge();
    this.#fault = undefined;
    this.#failures = 0;
    if (this.#saidFaults.size > 0 && ![...this.#cursors.values()].some(({ fault }) => fault)) {
      this.#say('info', 'it works again');
      this.#saidFaults.clear();
    }
  }

  /** Goes back to the last records that have arrived, and pauses. */
  async #failed(error: unknown, cursor?: TenantCursor): Promise<void> {
    const fault = error instanceof DeliveryFault ? error : new DeliveryFault('broken', reasonOf(error), error);
    const now = performance.now();
    if (cursor && fault.concernsTenant) {
      cursor.failed(fault, now, this.#pauseAfter);
      // A connection with other tenants' unconfirmed records is kept.
      await cursor.rewind();
    } else {
      this.#fault = fault;
      this.#notBefore = now + this.#pauseAfter(++this.#failures);
      if (this.#unconfirmed) this.#mostUnconfirmed = Math.max(leastUnconfirmed, this.#unconfirmed.bytes / 2);
      this.#unconfirmed = undefined;
      this.#receiver.drop();
      for (const each of this.#cursors.values()) await each.rewind();
    }
    // Reported once, not at each try.
    if (!this.#saidFaults.has(fault.message)) this.#say('warn', `${fault.message}; it is tried again`, fault);
    this.#saidFaults.add(fault.message);
  }

  readonly #pauseAfter = (failures: number): number => {
    const { pause, longestPause } = this.#deps.pace;
    return Math.min(longestPause, pause * 2 ** Math.min(failures - 1, 20));
  };

  /** Adds cursors for tenants now served, and drops those of tenants that are gone, whose places stay saved. */
  #meetTenants(): void {
    const served = this.#deps.tenants.all;
    for (const tenant of served) {
      const cursor = this.#cursors.get(tenant.record.id);
      if (cursor) cursor.tenant = tenant;
      else this.#cursors.set(tenant.record.id, new TenantCursor(tenant, this.#deps.places));
    }
    if (this.#cursors.size === served.length) return;
    const ids = new Set(served.map(({ record }) => record.id));
    for (const id of this.#cursors.keys()) if (!ids.has(id)) this.#cursors.delete(id);
  }

  async #saveWhenDue(): Promise<void> {
    const now = performance.now();
    if (now - this.#savedAt < this.#deps.pace.save) return;
    this.#savedAt = now;
    await this.#save();
  }

  /** A failure is reported once, and the save retried: at worst some records arrive twice. */
  async #save(): Promise<void> {
    if (!this.#deps.places.isChanged || this.#deps.mustWait()) return;
    try {
      await this.#deps.places.save();
      this.#saidUnsaved = false;
    } catch (error) {
      if (!this.#saidUnsaved) this.#say('warn', `how far it got could not be noted: ${reasonOf(error)}`, error);
      this.#saidUnsaved = true;
    }
  }

  async #rest(milliseconds: number): Promise<void> {
    await wait(milliseconds, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {});
  }

  #say(level: ApplianceEvent['level'], message: string, cause?: unknown): void {
    const whole = `activity to ${this.#target.name}: ${message}`;
    this.#deps.onEvent({ level, message: whole, ...(cause === undefined ? {} : { cause }) });
  }
}
