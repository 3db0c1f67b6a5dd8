// Holds requests that come before the appliance is open until it is, or could not be.
import type { RequestEnv } from '../http/deps.ts';
import type { AppFetch } from './http-server.ts';
import type { SealableAppliance } from './sealable.ts';

export class Gate {
  readonly #opened = Promise.withResolvers<SealableAppliance | undefined>();
  #appliance: SealableAppliance | undefined;

  readonly fetch: AppFetch = (request, env) => {
    const appliance = this.#appliance;
    return appliance ? appliance.fetch(request, env) : this.#later(request, env);
  };

  open(appliance: SealableAppliance): void {
    this.#appliance = appliance;
    this.#opened.resolve(appliance);
  }

  refuse(): void {
    this.#opened.resolve(undefined);
  }

  async #later(request: Request, env: RequestEnv): Promise<Response> {
    const appliance = await this.#opened.promise;
    return (
      appliance?.fetch(request, env) ?? Response.json({ message: 'the appliance could not start' }, { status: 503 })
    );
  }
}
