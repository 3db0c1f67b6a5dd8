// Lane is one tenant's activity on its way to one target: what of its log was handed over and what has arrived, read
// from the log in small batches while it goes on. Only what is durable is ever read; nothing is kept in memory between
// two batches.
import { timeOfId } from '../../crypto/ulid.ts';
import { reasonOf } from '../../errors.ts';
import type { Places } from '../../storage/places.ts';
import type { ServedTenant } from '../../storage/served-tenants.ts';
import type { ChainedActivity } from '../../store/port.ts';
import { type Batch, DeliveryFault, type Receiver } from './receiver.ts';
import type { StreamedTenant } from './record.ts';

/** A batch is full with so many records, or with the record that brings it to so many bytes of text. */
const batchRecords = 256;
const batchText = 128 * 1024;

export class Lane {
  tenant: ServedTenant;
  readonly #places: Places;
  /** The last record that was handed over. */
  #sent: number;
  #reader: AsyncIterator<ChainedActivity> | undefined;
  /** When the last record that has arrived was made, and the last one that was handed over. */
  #arrivedTime: number | undefined;
  #sentTime: number | undefined;
  /** Since when the oldest record that has not arrived is there, in epoch milliseconds. */
  #waitingSince: number | undefined;
  /** Where a batch that did not arrive ended: the same one is sent again. */
  #until: number | undefined;
  #isBegun = false;
  #failures = 0;
  #notBefore = 0;
  fault: DeliveryFault | undefined;

  constructor(tenant: ServedTenant, places: Places) {
    this.tenant = tenant;
    this.#places = places;
    this.#sent = places.of(tenant.record.id);
  }

  get name(): StreamedTenant {
    const { id, name } = this.tenant.record;
    return { id, name };
  }

  /** What retention dropped does not arrive any more. */
  get #place(): number {
    return Math.max(this.#places.of(this.tenant.record.id), this.#dropped);
  }

  get #dropped(): number {
    return this.tenant.handle.store.status().activityDropped?.seq ?? 0;
  }

  get #end(): number {
    return this.tenant.handle.store.status().activityCount;
  }

  /** Whether there is something to hand over, and its time has come; `now` as `failed` is told. */
  isDue(now: number): boolean {
    // One whose place is beyond the end of its log has that set right first.
    const isBehind = this.#isBegun ? this.#sent < this.#end : this.#place !== this.#end;
    return isBehind && now >= this.#notBefore;
  }

  get hasUnconfirmed(): boolean {
    return this.#sent > this.#place;
  }

  /** Records that have not arrived, and for how many milliseconds the oldest of them has been there. */
  lag(now: number): { readonly records: number; readonly ms: number } {
    const records = Math.max(0, this.#end - this.#place);
    this.#waitingSince = records === 0 ? undefined : (this.#waitingSince ?? now);
    return { records, ms: Math.max(0, now - (this.#waitingSince ?? now)) };
  }

  /** Finds out since when the first record waits that has not arrived; after a start. */
  async age(): Promise<void> {
    const place = this.#place;
    if (place >= this.#end) return;
    for await (const { record } of this.tenant.handle.store.activity.read(place + 1)) {
      if (this.#place === place) this.#waitingSince = timeOfId('act', record.id);
      return;
    }
  }

  /**
   * Before the first batch: what the receiver can tell of has arrived. Answers what is wrong with the place: it is
   * beyond the end of the log, and everything is sent again, or before its beginning.
   */
  async begin(receiver: Receiver): Promise<string | undefined> {
    if (this.#isBegun) return undefined;
    const { id, name } = this.tenant.record;
    let problem: string | undefined;
    if (this.#place > this.#end) {
      problem = `${this.#place} records of ${name} had arrived, and its log has ${this.#end}: all are sent again`;
      this.#places.set(id, 0);
    }
    const arrived = this.#places.of(id);
    if (arrived < this.#dropped) {
      const range = `${arrived + 1} to ${this.#dropped}`;
      problem ??= `records ${range} of ${name} were dropped by retention and do not arrive`;
    }
    const there = await receiver.arrived?.(this.name, this.#place);
    if (there && there.seq > this.#place && there.seq <= this.#end) {
      if ((await this.#hashOf(there.seq)) === there.hash) this.#places.set(id, there.seq);
    }
    this.#sent = this.#place;
    this.#isBegun = true;
    return problem;
  }

  /** The next records; undefined where there are none after all. */
  async next(): Promise<Batch | undefined> {
    const records: ChainedActivity[] = [];
    try {
      this.#reader ??= this.tenant.handle.store.activity.read(this.#sent + 1)[Symbol.asyncIterator]();
      for (let text = 0; records.length < batchRecords && text < batchText; ) {
        const { value, done } = await this.#reader.next();
        if (done) {
          this.#reader = undefined;
          break;
        }
        records.push(value);
        text += value.line.length;
        if (value.record.seq === this.#until) break;
      }
    } catch (error) {
      throw this.#unreadable(error);
    }
    const last = records.at(-1);
    if (!last) return undefined;
    this.#until = last.record.seq;
    this.#sentTime = timeOfId('act', last.record.id);
    return { tenant: this.name, records };
  }

  /** The batch is with the receiver. */
  handedOver(): void {
    this.#sent = this.#until ?? this.#sent;
    this.#until = undefined;
  }

  /** All that was handed over has arrived. */
  acknowledge(): void {
    this.#places.set(this.tenant.record.id, this.#sent);
    this.#arrivedTime = this.#sentTime ?? this.#arrivedTime;
    // What waits now is later than that.
    this.#waitingSince = this.#sent < this.#end ? this.#arrivedTime : undefined;
    this.#failures = 0;
    this.fault = undefined;
  }

  /** Goes back to what has arrived. */
  async rewind(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    // A reader that failed has nothing left to say.
    await reader?.return?.().catch(() => {});
    if (this.#sent > this.#place) this.#until = undefined;
    this.#sent = this.#place;
  }

  failed(fault: DeliveryFault, now: number, pause: (failures: number) => number): void {
    this.fault = fault;
    this.#notBefore = now + pause(++this.#failures);
  }

  async #hashOf(seq: number): Promise<string | undefined> {
    try {
      for await (const { hash } of this.tenant.handle.store.activity.read(seq)) return hash;
      return undefined;
    } catch (error) {
      throw this.#unreadable(error);
    }
  }

  #unreadable(error: unknown): DeliveryFault {
    return new DeliveryFault('log', `the log of ${this.name.name} could not be read: ${reasonOf(error)}`, error);
  }
}
