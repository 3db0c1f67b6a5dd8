// FairQueue holds the requests beyond those that can run at once: first come, first served for each caller, round robin
// between callers and between tenants. The heaviest sender waits longest. Beyond the bounds new requests are refused,
// and none waits longer than the patience.
import { KmsError } from '../errors.ts';

export interface FairLimits {
  /** Requests that run at once: enough to fill a group commit. */
  readonly atOnce: number;
  /** Waiting requests: in all, of one tenant, of one caller. */
  readonly waiting: number;
  readonly ofOneTenant: number;
  readonly ofOneCaller: number;
  /** Milliseconds that a request may wait. */
  readonly patience: number;
}

export const usualFairLimits: FairLimits = {
  atOnce: 512,
  waiting: 8192,
  ofOneTenant: 6144,
  ofOneCaller: 4096,
  patience: 10_000,
};

interface Waiter {
  readonly until: number;
  readonly enter: () => void;
  readonly refuse: (error: KmsError) => void;
}

interface Tenant {
  waiting: number;
  /** Waiting requests by caller, in the order of their turns; no set is empty. */
  readonly callers: Map<string, Set<Waiter>>;
}

export class FairQueue {
  readonly #limits: FairLimits;
  /** In the order of their turns; each has a request that waits. */
  readonly #tenants = new Map<string, Tenant>();
  #working = 0;
  #waiting = 0;
  #looking: NodeJS.Timeout | undefined;

  constructor(limits: FairLimits = usualFairLimits) {
    this.#limits = limits;
  }

  /**
   * Await this before working on a request; undefined if it may begin at once. Call `leave` when it is done. Throws
   * `unavailable` if too many are waiting already, or none of them makes progress.
   *
   * @param callerOf called only if the request has to wait: it reads the store.
   */
  enter(tenant: string, callerOf: () => string): Promise<void> | undefined {
    if (this.#working < this.#limits.atOnce && this.#waiting === 0) {
      this.#working++;
      return undefined;
    }
    const { waiting, ofOneTenant, ofOneCaller, patience } = this.#limits;
    const caller = callerOf();
    const queue = this.#tenants.get(tenant) ?? { waiting: 0, callers: new Map<string, Set<Waiter>>() };
    const line = queue.callers.get(caller) ?? new Set<Waiter>();
    if (this.#waiting >= waiting || queue.waiting >= ofOneTenant || line.size >= ofOneCaller) {
      return Promise.reject(tooMany());
    }
    this.#tenants.set(tenant, queue);
    queue.callers.set(caller, line);
    queue.waiting++;
    this.#waiting++;
    this.#looking ??= setInterval(() => this.#refuseLate(), 1000).unref();
    return new Promise((enter, refuse) => line.add({ until: performance.now() + patience, enter, refuse }));
  }

  /** Ends a request; the next in turn begins. */
  leave(): void {
    const next = this.#waiting === 0 ? undefined : this.#take();
    if (next) next.enter();
    else this.#working--;
  }

  #take(): Waiter | undefined {
    for (const [tenant, queue] of this.#tenants) {
      for (const [caller, line] of queue.callers) {
        for (const waiter of line) {
          // Served callers and tenants go to the end of the order.
          queue.callers.delete(caller);
          queue.callers.set(caller, line);
          this.#tenants.delete(tenant);
          this.#tenants.set(tenant, queue);
          this.#remove(tenant, caller, waiter);
          return waiter;
        }
      }
    }
    return undefined;
  }

  #remove(tenant: string, caller: string, waiter: Waiter): void {
    const queue = this.#tenants.get(tenant);
    const line = queue?.callers.get(caller);
    if (!queue || !line?.delete(waiter)) return;
    queue.waiting--;
    this.#waiting--;
    if (line.size === 0) queue.callers.delete(caller);
    if (queue.waiting === 0) this.#tenants.delete(tenant);
    if (this.#waiting > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  #refuseLate(): void {
    const now = performance.now();
    for (const [tenant, { callers }] of this.#tenants) {
      for (const [caller, line] of callers) {
        for (const waiter of line) {
          // The requests behind it came later.
          if (now < waiter.until) break;
          this.#remove(tenant, caller, waiter);
          waiter.refuse(tooMany());
        }
      }
    }
  }
}

/** In seconds. */
const soon = 1;

function tooMany(): KmsError {
  return new KmsError('unavailable', 'too many requests at once; try again', { retryAfter: soon });
}

/** The turn of one request, which it can give up for a while. */
export class Turn {
  readonly #queue: FairQueue;
  readonly #tenant: string;
  readonly #callerOf: () => string;
  #isHeld = false;

  constructor(queue: FairQueue, tenant: string, callerOf: () => string) {
    this.#queue = queue;
    this.#tenant = tenant;
    this.#callerOf = callerOf;
  }

  /** Await this, and call `leave` in any case. Throws as `enter` does. */
  take(): Promise<void> | undefined {
    const wait = this.#queue.enter(this.#tenant, this.#callerOf);
    if (!wait) this.#isHeld = true;
    return wait?.then(() => {
      this.#isHeld = true;
    });
  }

  leave(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#queue.leave();
  }

  /** Does work that waits for something else, while others have the turn. */
  async aside<R>(work: () => Promise<R>): Promise<R> {
    this.leave();
    try {
      return await work();
    } finally {
      await this.take();
    }
  }
}
