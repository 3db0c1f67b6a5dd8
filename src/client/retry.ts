// Retries: which failed requests are sent again, how often and after what pause, by a clock that tests replace. What
// changes something is never sent twice, unless the appliance itself answered that it could not serve right now.
import type { ClientEndpointId, Path } from '../api/paths.ts';

/**
 * When a request may be sent again: never, where it changes nothing, or in any case, since the appliance did nothing.
 */
type Again = 'never' | 'unchanging' | 'always';

/** What came of sending a request once. */
export type Outcome =
  | { readonly answer: object }
  | {
      readonly error: unknown;
      readonly again: Again;
      /** Seconds that the answer asked to wait. */
      readonly retryAfter?: number | undefined;
    };

/** The n-th pause is a random part of 250 ms doubled n times, and of 8 s at most. */
const firstPause = 250;
const longestPause = 8000;
/** Seconds. Who is asked to wait longer is told so instead. */
const longestRetryAfter = 30;

const reading: ReadonlySet<ClientEndpointId> = new Set([
  'decrypt',
  'searchActivity',
  'searchAssets',
  'validateApiKey',
  'passkeyLoginOptions',
  'startOidc',
]);

/**
 * Whether sending it twice does no more than sending it once. An encrypt without an asset stores nothing; each try
 * counts one towards the key's `maxEncryptCount`.
 */
export function isUnchanging(id: ClientEndpointId, [method]: Path, input: Readonly<Record<string, unknown>>): boolean {
  if (id === 'encrypt') return input.asset === undefined;
  if (id === 'validateApiKey') return input.activity === undefined;
  if (id === 'refreshSession') return false;
  return method === 'GET' || reading.has(id);
}

/** What may be done after an answer that is no success. `told`: it has the appliance's own form. */
export function againAfter(status: number, told: boolean): Again {
  if (status < 500) return 'never';
  return status === 503 && told ? 'always' : 'unchanging';
}

interface RetryOptions {
  /** How often a request is sent again at most. */
  readonly retries: number;
  readonly unchanging: boolean;
  readonly timing: Timing;
  /** Ends a pause. */
  readonly signal: AbortSignal;
}

/** The answer, or the last error thrown. */
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

/** Where the pauses and the timeouts come from. */
export interface Timing {
  /** Resolves after `ms`; rejects with the signal's reason when that comes first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** From 0 up to, not including, 1. */
  random(): number;
}

export const systemTiming: Timing = {
  random: () => Math.random(),
  sleep: (ms, shared) =>
    new Promise((resolve, reject) => {
      // Of its own: any number of calls may wait by one signal, of which Node takes more than ten for a leak.
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
