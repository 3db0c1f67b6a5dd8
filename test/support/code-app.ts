// An app that shows codes, set up as the second factor of a user of an appliance that is served, at the real time.
import { setTimeout as delay } from 'node:timers/promises';
import { appCode } from './authenticator.ts';

/** Sends JSON to a path of the appliance; resolves to the answer, and throws unless it succeeds. */
export type Send = (path: string, body: object, token?: string) => Promise<Record<string, string>>;

/** Milliseconds for which a code is shown. */
const step = 30_000;

export class CodeApp {
  readonly #secret: string;
  /** An access token of the user. */
  readonly token: string;
  /** Number of the step whose code was given last. */
  #last: number;

  private constructor(secret: string, token: string, last: number) {
    this.#secret = secret;
    this.token = token;
    this.#last = last;
  }

  /** Logs the user in and adds the app. */
  static async setUp(send: Send, username: string, password: string): Promise<CodeApp> {
    const { accessToken: token = '' } = await send('/auth/basic/login', { username, password });
    const factors = '/auth/user/second-factors/totp';
    const { id, secret = '' } = await send(factors, { currentPassword: password, name: 'phone' }, token);
    // A code of the step before is accepted, too, so that three are left at once.
    const last = stepAt(Date.now()) - 1;
    await send(`${factors}/finish`, { id, code: appCode(secret, last * step) }, token);
    return new CodeApp(secret, token, last);
  }

  /** A code that was not used before; waits until one is accepted. */
  async code(): Promise<string> {
    const next = Math.max(this.#last + 1, stepAt(Date.now()) - 1);
    // The one of the next step is accepted, as if the clocks differed.
    while (next > stepAt(Date.now()) + 1) await delay(500);
    this.#last = next;
    return appCode(this.#secret, next * step);
  }
}

function stepAt(time: number): number {
  return Math.floor(time / step);
}

/** Sends to an address without TLS. */
export function sendTo(url: string): Send {
  return async (path, body, token) => {
    const headers = {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const said = await answer.text();
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${said}`);
    return JSON.parse(said);
  };
}
