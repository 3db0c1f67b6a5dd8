// Room for answers on their way out: one budget for all that wait to be read, in which a list has to find room before
// it is made, and in which those who read slowly make room for those who wait for it.
import type { ServerResponse } from 'node:http';
import { KmsError } from '../errors.ts';
import type { AnswerRoom } from '../http/request.ts';

const MiB = 1024 * 1024;

export interface AnswerLimits {
  /** Bytes of answers that wait to be read, and that lists in the making may come to. */
  readonly unread: number;
  /** Of one credential. */
  readonly ofOneHolder: number;
  /** Requests that wait for room, and milliseconds that each may. */
  readonly queued: number;
  readonly queuedOfOneHolder: number;
  readonly patience: number;
  /**
   * When others wait for the room, whoever has read nothing for so many milliseconds is cut off, and whoever has read
   * less than so many bytes a second after as many.
   */
  readonly grace: number;
  readonly slowest: number;
  /** Milliseconds between two looks at those, while somebody waits. */
  readonly lookEvery: number;
}

export const usualAnswerLimits: AnswerLimits = {
  unread: 64 * MiB,
  ofOneHolder: 32 * MiB,
  queued: 1024,
  queuedOfOneHolder: 256,
  patience: 30_000,
  grace: 10_000,
  slowest: 64 * 1024,
  lookEvery: 1000,
};

interface Waiter {
  readonly bytes: number;
  readonly holder: string;
  readonly until: number;
  readonly enter: () => void;
  readonly refuse: (error: KmsError) => void;
}

/** Who asks without a credential. */
const stranger = '';

/** Counts the bytes that wait to be read. */
export class AnswerBudget {
  readonly limits: AnswerLimits;
  readonly #holders = new Map<string, number>();
  readonly #queue = new Set<Waiter>();
  readonly #rooms = new Set<ResponseRoom>();
  #unread = 0;
  #looking: NodeJS.Timeout | undefined;

  constructor(limits: AnswerLimits = usualAnswerLimits) {
    this.limits = limits;
  }

  get unread(): number {
    return this.#unread;
  }

  /** Whether there is room for so many more; they are counted then. */
  take(bytes: number, holder: string): boolean {
    const { unread, ofOneHolder } = this.limits;
    if (this.#unread + bytes > unread || (this.#holders.get(holder) ?? 0) + bytes > ofOneHolder) return false;
    this.add(bytes, holder);
    return true;
  }

  /** Waits for room, in the order of coming. `broken` rejects where nobody waits for the answer any more. */
  wait(bytes: number, holder: string, broken: AbortSignal): Promise<void> {
    const { queued, queuedOfOneHolder, patience } = this.limits;
    const others = [...this.#queue];
    if (others.length >= queued || others.filter((each) => each.holder === holder).length >= queuedOfOneHolder) {
      return Promise.reject(noRoom());
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { bytes, holder, until: performance.now() + patience, enter: resolve, refuse: reject };
      this.#queue.add(waiter);
      broken.addEventListener('abort', () => this.#queue.delete(waiter) && reject(noRoom()));
      this.#looking ??= setInterval(() => this.#look(), this.limits.lookEvery).unref();
      this.#makeRoom();
    });
  }

  /** Counts what is there already; fewer where `bytes` is negative. */
  add(bytes: number, holder: string): void {
    this.#unread += bytes;
    const held = (this.#holders.get(holder) ?? 0) + bytes;
    if (held > 0) this.#holders.set(holder, held);
    else this.#holders.delete(holder);
    if (bytes < 0) this.#letIn();
  }

  opened(room: ResponseRoom): void {
    this.#rooms.add(room);
  }

  closed(room: ResponseRoom): void {
    this.#rooms.delete(room);
  }

  #letIn(): void {
    for (const waiter of this.#queue) {
      if (!this.take(waiter.bytes, waiter.holder)) continue;
      this.#queue.delete(waiter);
      waiter.enter();
    }
  }

  #look(): void {
    const now = performance.now();
    for (const waiter of this.#queue) {
      if (now < waiter.until) continue;
      this.#queue.delete(waiter);
      waiter.refuse(noRoom());
    }
    this.#makeRoom();
    if (this.#queue.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  /** Cuts off who is slow and stands in the way of somebody who waits. */
  #makeRoom(): void {
    const waiting = [...this.#queue];
    const holders = new Set(waiting.map(({ holder }) => holder));
    const isFull = waiting.some(({ bytes }) => this.#unread + bytes > this.limits.unread);
    const now = performance.now();
    for (const room of this.#rooms) {
      if ((isFull || holders.has(room.holder)) && room.isSlow(now, this.limits)) room.cut();
    }
  }
}

export class ResponseRoom implements AnswerRoom {
  readonly #outgoing: ServerResponse;
  readonly #budget: AnswerBudget;
  #holder: string | undefined;
  #taken = 0;
  /** When it began to be sent, how long it was, and when a part of it was read last. */
  #begun: { readonly at: number; readonly length: number; lastRead: number } | undefined;

  constructor(outgoing: ServerResponse, budget: AnswerBudget) {
    this.#outgoing = outgoing;
    this.#budget = budget;
  }

  get holder(): string {
    return this.#holder ?? stranger;
  }

  async take(bytes: number, holder = stranger): Promise<void> {
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

  takeNow(bytes: number, holder = stranger): void {
    if (!this.#budget.take(bytes, holder)) throw noRoom();
    this.#hold(bytes, holder);
  }

  #hold(bytes: number, holder: string): void {
    this.#holder = holder;
    this.#taken = bytes;
    this.#budget.opened(this);
    const letGo = (): void => {
      this.#resize(0);
      this.#budget.closed(this);
    };
    if (this.#outgoing.destroyed) letGo();
    else this.#outgoing.once('close', letGo);
  }

  left(bytes: number): void {
    if (this.#holder === undefined || this.#outgoing.destroyed) return;
    const now = performance.now();
    this.#begun ??= { at: now, length: bytes, lastRead: now };
    this.#begun.lastRead = now;
    this.#resize(bytes);
  }

  #resize(bytes: number): void {
    this.#budget.add(bytes - this.#taken, this.holder);
    this.#taken = bytes;
  }

  isSlow(now: number, { grace, slowest }: AnswerLimits): boolean {
    if (!this.#begun) return false;
    const { at, length, lastRead } = this.#begun;
    return now - lastRead > grace || length - this.#taken < ((now - at - grace) / 1000) * slowest;
  }

  cut(): void {
    this.#outgoing.socket?.destroy();
  }
}

/** Seconds. */
const soon = 5;

function noRoom(): KmsError {
  return new KmsError('unavailable', 'too many answers wait to be read; try again', { retryAfter: soon });
}
