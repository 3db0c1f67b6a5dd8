// Which handler a request gets while the appliance opens, while an upgrade tries it, and on a standby.
import type { HeldAppliance } from '../appliance/appliance.ts';
import type { ApiRequest } from '../http/request.ts';
import type { Answer, Reply } from '../http/request-log.ts';
import type { Outcome } from '../http/respond.ts';
import type { Hold } from '../upgrade/journal.ts';

/** Paths that change nothing that could be lost, or that let the appliance be unsealed. */
const harmless: ReadonlySet<string> = new Set(['/healthz', '/system/seal-status', '/system/unseal', '/local/status']);

/** The upgrade itself comes through the local socket. */
function mayPass(hold: Hold, { path, local, headers }: ApiRequest): boolean {
  return harmless.has(path) || (local === true && hold.isUpgrade(headers));
}

function unavailable(message: string, headers: Outcome['headers'] = {}): Reply {
  return { outcome: { status: 503, body: { message }, headers } };
}

/** Holds early requests until the appliance is open, or has failed to open. */
export class Gate {
  #hold: Hold | undefined;
  /** Resolves once there is a handler, or a reason for a refusal. */
  readonly #decided = Promise.withResolvers<void>();
  #reason: string | undefined;
  #appliance: HeldAppliance | undefined;
  #standby: Answer | undefined;
  #requests = 0;

  constructor(hold: Hold | undefined) {
    this.#hold = hold;
    void hold?.released.then(() => {
      this.#hold = undefined;
    });
  }

  /** How many requests came. */
  get requests(): number {
    return this.#requests;
  }

  /** Whether clients are asked for a certificate when they connect. */
  asksCertificates(): boolean {
    return this.#appliance?.asksCertificates() ?? false;
  }

  readonly handle: Answer = (request) => {
    this.#requests++;
    return this.#answer(request);
  };

  #answer(request: ApiRequest): Promise<Reply> {
    if (this.#standby) return this.#standby(request);
    const hold = this.#hold;
    if (hold && !mayPass(hold, request)) {
      const { message, retryAfter = 1 } = hold.refusal;
      return Promise.resolve(unavailable(message, { 'Retry-After': String(retryAfter) }));
    }
    return this.#appliance ? this.#appliance.requests.handle(request) : this.#answerLater(request);
  }

  /** Refuses requests with this reason until it opens, instead of holding them: that may take long. */
  wait(reason: string): void {
    this.#reason = reason;
    this.#decided.resolve();
  }

  standBy(answer: Answer): void {
    this.#standby = answer;
    this.#decided.resolve();
  }

  open(appliance: HeldAppliance): void {
    this.#standby = undefined;
    this.#appliance = appliance;
    this.#decided.resolve();
  }

  refuse(): void {
    this.#decided.resolve();
  }

  async #answerLater(request: ApiRequest): Promise<Reply> {
    await this.#decided.promise;
    if (this.#standby || this.#appliance) return this.#answer(request);
    if (this.#reason !== undefined) return unavailable(this.#reason, { 'Retry-After': '1' });
    return unavailable('the appliance could not start');
  }
}
