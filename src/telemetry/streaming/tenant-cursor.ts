// TenantCursor carries one tenant's activity to one target: which records were handed over and which have arrived, read
// from the log in small batches. Only durable records are read; nothing is kept in memory between two batches.
import { timeOfId } from '../../crypto/ulid.ts';
import { reasonOf } from '../../errors.ts';
import type { ServedTenant } from '../../storage/served-tenants.ts';
import type { Places } from '../../storage/streamed-positions.ts';
import type { ChainedActivity } from '../../store/port.ts';
import { type Batch, DeliveryFault, type Receiver } from './receiver.ts';
import type { StreamedTenant } from './record.ts';

/** A batch ends at this many records, or with the record that reaches this many characters of text. */
const batchRecords = 256;
const batchText = 128 * 1024;

export class TenantCursor {
  tenant: ServedTenant;
  readonly #places: Places;
  /** The last record handed over. */
  #sent: number;
  #reader: AsyncIterator<ChainedActivity> | undefined;
  /** Creation times of the last record that has arrived, and of the last one handed over. */
  #arrivedTime: number | undefined;
  #sentTime: number | undefined;
  /** Creation time of the oldest record that has not arrived, in epoch milliseconds. */
  #waitingSince: number | undefined;
  /** The last record of a batch that did not arrive: the same batch is sent again. */
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

  /** Records dropped by retention will not arrive. */
  get #place(): number {
    return Math.max(this.#places.of(this.tenant.record.id), this.#dropped);
  }

  get #dropped(): number {
    return this.tenant.handle.store.status().activityDropped?.seq ?? 0;
  }

  get #end(): number {
    return this.tenant.handle.store.status().activityCount;
  }

  /** Whether there are records to hand over and any pause is over; `now` is on the clock of `failed`. */
  isDue(now: number): boolean {
    // A place beyond the end of the log has to be corrected first.
    const isBehind = this.#isBegun ? this.#sent < this.#end : this.#place !== this.#end;
    return isBehind && now >= this.#notBefore;
  }

  get hasUnconfirmed(): boolean {
    return this.#sent > this.#place;
  }

  /** Records that have not arrived, and the age of the oldest in milliseconds. */
  lag(now: number): { readonly records: number; readonly ms: number } {
    const records = Math.max(0, this.#end - this.#place);
    this.#waitingSince = records === 0 ? undefined : (this.#waitingSince ?? now);
    return { records, ms: Math.max(0, now - (this.#waitingSince ?? now)) };
  }

  /** After a start: finds the creation time of the first record that has not arrived. */
  async age(): Promise<void> {
    const place = this.#place;
    if (place >= this.#end) return;
    for await (const { record } of this.tenant.handle.store.activity.read(place + 1)) {
      if (this.#place === place) this.#waitingSince = timeOfId('act', record.id);
      return;
    }
  }

  /**
   * Before the first batch: takes over the place that the receiver reports. Returns a problem with the place: it is
   * beyond the end of the log, so that everything is sent again, or before its beginning.
   */
  async begin(receiver: Receiver): Promise<string | undefined> {
    if (this.#isBegun) return undefined;
    const { id, name } = this.tenant.record;
    let problem: string | undefined;
    if (this.#place > this.#end) {
      problem = `${this.#place} records of ${name} had arrived, but its log has only ${this.#end}: all are sent again`;
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

  /** The next records; undefined if there turn out to be none. */
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

  /** The receiver has taken the batch. */
  handedOver(): void {
    this.#sent = this.#until ?? this.#sent;
    this.#until = undefined;
  }

  /** All records handed over have arrived. */
  acknowledge(): void {
    this.#places.set(this.tenant.record.id, this.#sent);
    this.#arrivedTime = this.#sentTime ?? this.#arrivedTime;
    // The waiting records are later than that.
    this.#waitingSince = this.#sent < this.#end ? this.#arrivedTime : undefined;
    this.#failures = 0;
    this.fault = undefined;
  }

  /** Goes back to the last record that has arrived. */
  async rewind(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    // The error of a failed reader was already reported.
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
