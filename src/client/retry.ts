// Retries: which failed requests are sent again, how often and after what pause, with a clock that tests can replace. A
// request that changes something is never sent twice, unless the appliance itself answered that it could not serve it
// now.
import type { ClientEndpointId, Path } from '../api/paths.ts';

/** When to retry: never, only a request that changes nothing, or always, since the appliance did nothing. */
type Again = 'never' | 'unchanging' | 'always';

/** Outcome of sending a request once. */
export type Outcome =
  | { readonly answer: object }
  | {
      readonly error: unknown;
      readonly again: Again;
      /** Seconds from `Retry-After`. */
      readonly retryAfter?: number | undefined;
    };

/** The n-th pause is a random fraction of 250 ms doubled n times, 8 s at most. */
const firstPause = 250;
const longestPause = 8000;
/** Seconds. A longer `Retry-After` is not waited for: the caller gets the error. */
const longestRetryAfter = 30;

const reading: ReadonlySet<ClientEndpointId> = new Set([
  'decrypt',
  'generateRandom',
  'hashMessage',
  'searchActivity',
  'searchAssets',
  'validateApiKey',
  'passkeyLoginOptions',
  'startOidc',
  'testProof',
]);

/**
 * Whether sending it twice has no more effect than sending it once. An encrypt without an asset stores nothing; each
 * try counts as one towards the key's `maxEncryptCount`.
 */
export function isUnchanging(id: ClientEndpointId, [method]: Path, input: Readonly<Record<string, unknown>>): boolean {
  if (id === 'encrypt') return input.asset === undefined;
  if (id === 'validateApiKey') return input.activity === undefined;
  if (id === 'refreshSession') return false;
  return method === 'GET' || reading.has(id);
}

/** Retry rule for an answer other than success. `told`: the body has the appliance's own form. */
export function againAfter(status: number, told: boolean): Again {
  if (status < 500) return 'never';
  return status === 503 && told ? 'always' : 'unchanging';
}

interface RetryOptions {
  /** Maximum of retries. */
  readonly retries: number;
  readonly unchanging: boolean;
  readonly timing: Timing;
  /** Aborts a pause. */
  readonly signal: AbortSignal;
}

/** Returns the answer or throws the last error. */
export async function withRetries(send: () => Promise<Outcome>, options: RetryOptions): Promise<object> {
  const { retries, unchanging, timing, signal } = options;
  for (let tries = 0; ; tries++) {
    const outcome = await send();
    if ('answer' in outcome) return outcome.answer;
    const { error, again, retryAfter = 0 } = outcome;
    const may = again === 'always' || (again === 'unchanging' && unchanging);
    if (!may || tries >= retries || retryAfter > longestRetryAfter) throw error;
    const pause = timing.random() * Math.min(longestPause, firstPause * 2 ** tries);
    await timing.sleep(Math.max(pause, retryAfter * 1000), signal);
  }
}

/** Source of pauses and timeouts. */
export interface Timing {
  /** Resolves after `ms`; rejects with the signal's reason if that comes first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** At least 0, less than 1. */
  random(): number;
}

export const systemTiming: Timing = {
  random: () => Math.random(),
  sleep: (ms, shared) =>
    new Promise((resolve, reject) => {
      // A derived signal: many calls may wait on the shared one, and Node warns of a leak above ten listeners.
      const signal = AbortSignal.any([shared]);
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      }, ms);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    }),
};
