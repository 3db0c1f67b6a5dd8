// WorkloadBrake slows guessing at logins of programs down, by address alone: tokens cannot be guessed, and who sends
// rubbish must not lock a program out by its name. Tries with one refused token count less, since clients try again.
import { hashSecret } from '../../crypto/secrets.ts';
import type { BackoffTurn } from '../backoff.ts';
import type { World } from '../context.ts';
import type { LoginBackoff } from '../login-backoff.ts';

/** Milliseconds for which a refused token is remembered. */
const rememberedFor = 60_000;
const mostHeld = 10_000;
/** Tries with one refused token, of which one counts. */
const oneOf = 10;

interface LoginOrigin {
  readonly tenant: string;
  readonly address: string;
}

/** A login that is braked: the same proof for another API key is another try, which has a record of its own. */
interface LoginTry {
  readonly token: string;
  readonly role: string | undefined;
}

interface Refused {
  readonly at: number;
  tries: number;
}

export class WorkloadBrake {
  readonly #backoff: LoginBackoff;
  readonly #elapsed: World['elapsed'];
  /** Refused tokens of an origin, by both; oldest first. */
  readonly #refused = new Map<string, Refused>();

  constructor(backoff: LoginBackoff, elapsed: World['elapsed']) {
    this.#backoff = backoff;
    this.#elapsed = elapsed;
  }

  /**
   * Runs the check of a token. A refused one is counted, and so is one that cannot be checked; a good one is no success
   * before `forgive`. `isRepeated`: it was refused before, and needs no record again. Throws `rate-limited` if the
   * origin has to wait.
   */
  async attempt<T extends { readonly proven?: unknown }>(
    origin: LoginOrigin,
    asked: LoginTry,
    work: () => Promise<T>,
  ): Promise<{ readonly outcome: T; readonly isRepeated: boolean }> {
    const turn = await this.#backoff.begin(origin);
    try {
      const outcome = await work();
      const isRepeated = outcome.proven === undefined && this.#count(origin, asked, turn);
      return { outcome, isRepeated };
    } catch (error) {
      this.#count(origin, asked, turn);
      throw error;
    } finally {
      turn.abandoned();
    }
  }

  /** Clears the counts of an origin from which a login succeeded. */
  forgive(origin: LoginOrigin): void {
    this.#backoff.forgive(origin);
  }

  /** Returns whether the same was refused within the last minute. */
  #count({ tenant, address }: LoginOrigin, { token, role = '' }: LoginTry, turn: BackoffTurn): boolean {
    const name = `${tenant} ${address} ${hashSecret(token)} ${hashSecret(role)}`;
    const now = this.#elapsed();
    const known = this.#refused.get(name);
    if (known && now - known.at < rememberedFor) {
      known.tries++;
      if (known.tries % oneOf === 0) turn.failed();
      return true;
    }
    this.#refused.delete(name);
    const [oldest] = this.#refused.size >= mostHeld ? this.#refused.keys() : [];
    if (oldest !== undefined) this.#refused.delete(oldest);
    this.#refused.set(name, { at: now, tries: 1 });
    turn.failed();
    return false;
  }
}
