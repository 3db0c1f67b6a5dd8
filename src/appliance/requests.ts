// The requests of an appliance: open stores are not closed before the requests under way are answered, and once a
// standby took over no request is answered any more.
import { setTimeout } from 'node:timers/promises';
import { sealEndpoints } from '../api/system.ts';
import type { KmsError } from '../errors.ts';
import type { App } from '../http/app.ts';
import { type AppFetch, fetchFrom } from '../http/fetch.ts';
import type { ApiRequest } from '../http/request.ts';
import type { Reply } from '../http/request-log.ts';
import { refused } from '../http/respond.ts';

/** Unsealing needs no open stores, and may itself wait for a closing appliance, so closing must not wait for it. */
const { path: uncounted } = sealEndpoints.unseal;

/** Milliseconds that requests under way may take once the appliance is sealed. */
const grace = 10_000;

export class Requests {
  readonly #app: App;
  readonly #isSealed: () => boolean;
  #underWay = 0;
  /** The error for all requests, once stopped. */
  #stopped: KmsError | undefined;

  constructor(app: App, isSealed: () => boolean) {
    this.#app = app;
    this.#isSealed = isSealed;
  }

  /** Never fails. */
  handle(request: ApiRequest): Promise<Reply> {
    const { path } = request;
    if (this.#stopped && path !== '/healthz') return Promise.resolve({ outcome: refused(this.#stopped) });
    if (this.#isSealed() || path === uncounted) return this.#app.handle(request);
    this.#underWay++;
    const reply = this.#app.handle(request);
    void reply.then(this.#done);
    return reply;
  }

  readonly fetch: AppFetch = fetchFrom((request) => this.handle(request));

  readonly #done = (): void => {
    this.#underWay--;
  };

  /** From now on every request gets this error. */
  stop(reason: KmsError): void {
    this.#stopped = reason;
  }

  /** Resolves once the requests under way are answered, or after the grace. */
  async answered(): Promise<void> {
    for (let waited = 0; this.#underWay > 0 && waited < grace; waited += 20) await setTimeout(20);
  }
}
