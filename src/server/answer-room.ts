// Memory for answers that clients have not read yet: one budget for all, in which a list reserves room before it is
// made, and in which slow readers are cut off for requests that wait.
import type { ServerResponse } from 'node:http';
import { KmsError } from '../errors.ts';
import type { AnswerRoom, Holder } from '../http/request.ts';

const MiB = 1024 * 1024;

export interface AnswerLimits {
  /** Bytes of unread answers, including lists being made: in all, of a tenant, of a caller. */
  readonly unread: number;
  readonly ofOneTenant: number;
  readonly ofOneCaller: number;
  /** Requests waiting for room: in all, of a tenant, of a caller; then the milliseconds that each may wait. */
  readonly queued: number;
  readonly queuedOfOneTenant: number;
  readonly queuedOfOneCaller: number;
  readonly patience: number;
  /**
   * While the room is needed, a client that has read nothing for `grace` milliseconds is disconnected, and so is one
   * that has read less than `slowest` bytes a second after that time.
   */
  readonly grace: number;
  readonly slowest: number;
  /** Milliseconds between two checks for slow readers, while a request waits. */
  readonly lookEvery: number;
}

export const usualAnswerLimits: AnswerLimits = {
  unread: 64 * MiB,
  ofOneTenant: 48 * MiB,
  ofOneCaller: 32 * MiB,
  queued: 1024,
  queuedOfOneTenant: 512,
  queuedOfOneCaller: 256,
  patience: 30_000,
  grace: 10_000,
  slowest: 64 * 1024,
  lookEvery: 1000,
};

/** Counts in all, by tenant and by caller, each with a bound. */
class Shares {
  all = 0;
  readonly #of = new Map<string, number>();

  fits(more: number, { tenant, caller }: Holder, most: number, ofOneTenant: number, ofOneCaller: number): boolean {
    if (this.all + more > most || (this.#of.get(tenant) ?? 0) + more > ofOneTenant) return false;
    return caller === undefined || (this.#of.get(caller) ?? 0) + more <= ofOneCaller;
  }

  add(more: number, { tenant, caller }: Holder): void {
    this.all += more;
    for (const id of caller === undefined ? [tenant] : [tenant, caller]) {
      const now = (this.#of.get(id) ?? 0) + more;
      if (now > 0) this.#of.set(id, now);
      else this.#of.delete(id);
    }
  }
}

interface Wanting {
  readonly bytes: number;
  readonly holder: Holder;
}

interface Waiter extends Wanting {
  readonly until: number;
  readonly enter: () => void;
  readonly refuse: (error: KmsError) => void;
}

/** Counts the bytes of unread answers. */
export class AnswerBudget {
  readonly #limits: AnswerLimits;
  readonly #bytes = new Shares();
  readonly #waiting = new Shares();
  readonly #queue = new Set<Waiter>();
  readonly #rooms = new Set<ResponseRoom>();
  #looking: NodeJS.Timeout | undefined;

  constructor(limits: AnswerLimits = usualAnswerLimits) {
    this.#limits = limits;
  }

  get unread(): number {
    return this.#bytes.all;
  }

  /** Counts this many more bytes, if there is room; says whether there was. */
  take(bytes: number, holder: Holder): boolean {
    const { unread, ofOneTenant, ofOneCaller } = this.#limits;
    if (!this.#bytes.fits(bytes, holder, unread, ofOneTenant, ofOneCaller)) return false;
    this.#bytes.add(bytes, holder);
    return true;
  }

  /** Refuses the bytes, and disconnects slow readers for them: a retry may find room. */
  refuse(bytes: number, holder: Holder): never {
    this.#makeRoom([{ bytes, holder }]);
    throw noRoom();
  }

  /** Waits for room, first come, first served. Rejects when `broken` aborts, as the client is gone. */
  wait(bytes: number, holder: Holder, broken: AbortSignal): Promise<void> {
    const { queued, queuedOfOneTenant, queuedOfOneCaller, patience, lookEvery } = this.#limits;
    if (!this.#waiting.fits(1, holder, queued, queuedOfOneTenant, queuedOfOneCaller)) return Promise.reject(noRoom());
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { bytes, holder, until: performance.now() + patience, enter: resolve, refuse: reject };
      this.#queue.add(waiter);
      this.#waiting.add(1, holder);
      broken.addEventListener('abort', () => this.#leave(waiter) && reject(noRoom()));
      this.#looking ??= setInterval(() => this.#look(), lookEvery).unref();
      this.#makeRoom([...this.#queue]);
    });
  }

  /** Counts bytes without asking for room; gives them back if `bytes` is negative. */
  add(bytes: number, holder: Holder): void {
    this.#bytes.add(bytes, holder);
    if (bytes < 0) this.#letIn();
  }

  opened(room: ResponseRoom): void {
    this.#rooms.add(room);
  }

  closed(room: ResponseRoom): void {
    this.#rooms.delete(room);
  }

  /** Whether it was still waiting. */
  #leave(waiter: Waiter): boolean {
    if (!this.#queue.delete(waiter)) return false;
    this.#waiting.add(-1, waiter.holder);
    return true;
  }

  #letIn(): void {
    for (const waiter of this.#queue) {
      if (!this.take(waiter.bytes, waiter.holder)) continue;
      this.#leave(waiter);
      waiter.enter();
    }
  }

  #look(): void {
    const now = performance.now();
    for (const waiter of this.#queue) {
      if (now < waiter.until) continue;
      this.#leave(waiter);
      waiter.refuse(noRoom());
    }
    this.#makeRoom([...this.#queue]);
    if (this.#queue.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  /** Disconnects slow readers whose room a waiting or new request needs. */
  #makeRoom(waiting: readonly Wanting[]): void {
    const { unread, grace, slowest } = this.#limits;
    const tenants = new Set(waiting.map(({ holder }) => holder.tenant));
    const isFull = waiting.some(({ bytes }) => this.unread + bytes > unread);
    const now = performance.now();
    for (const room of this.#rooms) {
      const isInTheWay = isFull || tenants.has(room.holder?.tenant ?? '');
      if (isInTheWay && room.isSlow(now, grace, slowest)) room.cut();
    }
  }
}

export class ResponseRoom implements AnswerRoom {
  readonly #outgoing: ServerResponse;
  readonly #budget: AnswerBudget;
  #holder: Holder | undefined;
  #taken = 0;
  #isMade = false;
  #isClosed = false;
  /** When sending began, the length then, and when the client last read a part. */
  #begun: { readonly at: number; readonly length: number; lastRead: number } | undefined;

  constructor(outgoing: ServerResponse, budget: AnswerBudget) {
    this.#outgoing = outgoing;
    this.#budget = budget;
  }

  /** Undefined until room is taken. */
  get holder(): Holder | undefined {
    return this.#holder;
  }

  async take(bytes: number, holder: Holder): Promise<void> {
    if (this.#outgoing.destroyed) throw noRoom();
    const broken = new AbortController();
    const onClose = (): void => broken.abort();
    this.#outgoing.once('close', onClose);
    try {
      if (!this.#budget.take(bytes, holder)) await this.#budget.wait(bytes, holder, broken.signal);
    } finally {
      this.#outgoing.off('close', onClose);
    }
    this.#hold(bytes, holder);
  }

  takeNow(bytes: number, holder: Holder): void {
    if (!this.#budget.take(bytes, holder)) this.#budget.refuse(bytes, holder);
    this.#hold(bytes, holder);
  }

  #hold(bytes: number, holder: Holder): void {
    this.#holder = holder;
    this.#taken += bytes;
    // Room that was given back before was for another answer.
    this.#begun = undefined;
    this.#budget.opened(this);
    const closed = (): void => {
      this.#isClosed = true;
      this.#letGo();
    };
    if (this.#outgoing.destroyed) closed();
    else this.#outgoing.once('close', closed);
  }

  /** The answer is complete, or there will be none. Until then the work continues, even if the client is gone. */
  made(): void {
    this.#isMade = true;
    this.#letGo();
  }

  get #isOver(): boolean {
    return this.#isMade && this.#isClosed;
  }

  #letGo(): void {
    if (!this.#isOver) return;
    this.#resize(0);
    this.#budget.closed(this);
  }

  left(bytes: number): void {
    if (!this.#holder || this.#isOver) return;
    const now = performance.now();
    this.#begun ??= { at: now, length: bytes, lastRead: now };
    this.#begun.lastRead = now;
    this.#resize(bytes);
  }

  release(): void {
    this.#resize(0);
    this.#begun = undefined;
    this.#budget.closed(this);
  }

  #resize(bytes: number): void {
    if (this.#holder) this.#budget.add(bytes - this.#taken, this.#holder);
    this.#taken = bytes;
  }

  isSlow(now: number, grace: number, slowest: number): boolean {
    if (!this.#begun) return false;
    const { at, length, lastRead } = this.#begun;
    return now - lastRead > grace || length - this.#taken < ((now - at - grace) / 1000) * slowest;
  }

  cut(): void {
    this.#outgoing.socket?.destroy();
  }
}

/** In seconds. */
const soon = 5;

function noRoom(): KmsError {
  return new KmsError('unavailable', 'too many answers wait to be read; try again', { retryAfter: soon });
}
