// Slows the guessing of passphrases and shares over the network down, as logins are: past five failures from an address each further
// try must wait, twice as long each time. Whoever sits at the machine is not held up.
import { loginBackoff } from '../../core/login-backoff.ts';
import { KmsError } from '../../errors.ts';
import type { RequestEnv } from '../../http/deps.ts';

/** An attempt that neither opens nor fails, such as one share of several, answers nothing, and changes no count. */
export type UnsealBrake = <R>(from: RequestEnv, attempt: () => Promise<R | undefined>) => Promise<R | undefined>;

export function unsealBrake(now: () => number): UnsealBrake {
  const backoff = loginBackoff({ now });
  return async ({ local, remoteAddress }, attempt) => {
    if (local) return attempt();
    const turn = await backoff
      .begin({ tenant: 'unseal', name: 'unseal', address: remoteAddress ?? 'unknown' })
      .catch((error: unknown) => {
        if (!(error instanceof KmsError) || error.retryAfter === undefined) throw error;
        const seconds = error.retryAfter;
        throw new KmsError('rate-limited', `too many failed tries; try again in ${seconds} s`, { retryAfter: seconds });
      });
    try {
      const result = await attempt();
      if (result !== undefined) turn.succeeded();
      return result;
    } catch (error) {
      if (error instanceof KmsError && (error.code === 'refused' || error.code === 'invalid')) turn.failed();
      throw error;
    } finally {
      turn.abandoned();
    }
  };
}
