// The requests that an appliance answers: what is open is not closed before those that found it so are answered, and
// once a standby took over none is answered any more.
import { setTimeout } from 'node:timers/promises';
import { sealEndpoints } from '../api/system.ts';
import type { KmsError } from '../errors.ts';
import type { App, Straight, Surface } from '../http/app.ts';
import type { RequestEnv } from '../http/request.ts';
import { refused, respond } from '../http/respond.ts';

/** What needs nothing that is open, and may wait for what closes: nothing that closes waits for it. */
const { method, path: uncounted } = sealEndpoints.unseal;

/** How long requests under way may take once the appliance is sealed, in milliseconds. */
const grace = 10_000;

export class Requests {
  readonly #app: App;
  readonly #isSealed: () => boolean;
  #underWay = 0;
  /** Why nobody is answered any more. */
  #stopped: KmsError | undefined;

  constructor(app: App, isSealed: () => boolean) {
    this.#app = app;
    this.#isSealed = isSealed;
  }

  async fetch(request: Request, env: RequestEnv): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (this.#stopped && pathname !== '/healthz') return respond(refused(this.#stopped));
    if (this.#isSealed() || pathname === uncounted) return this.#app.fetch(request, env);
    this.#underWay++;
    try {
      return await this.#app.fetch(request, env);
    } finally {
      this.#underWay--;
    }
  }

  /** As the app has it. */
  straightTo(target: string, surface?: Surface): Straight | undefined {
    if (this.#stopped) return undefined;
    const straight = this.#app.straightTo(target, surface);
    if (!straight || target === `${method} ${uncounted}`) return straight;
    return (env) => this.#countedReply(straight, env);
  }

  /** Of what never fails, without a promise more to wait for. */
  #countedReply(straight: Straight, env: RequestEnv): ReturnType<Straight> {
    if (this.#isSealed()) return straight(env);
    this.#underWay++;
    const reply = straight(env);
    const done = (): void => {
      this.#underWay--;
    };
    reply.then(done, done);
    return reply;
  }

  /** From now on nobody is answered but with that. */
  stop(reason: KmsError): void {
    this.#stopped = reason;
  }

  /** Resolves once the requests under way were answered; they may take so long, and no longer. */
  async answered(): Promise<void> {
    for (let waited = 0; this.#underWay > 0 && waited < grace; waited += 20) await setTimeout(20);
  }
}
