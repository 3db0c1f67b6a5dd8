// WorkloadBrake slows guessing at logins of programs down, by address alone: tokens cannot be guessed, and who sends
// rubbish must not lock a program out by its name. A client that tries the same refused token again is not counted
// again.
import { hashSecret } from '../../crypto/secrets.ts';
import type { BackoffTurn } from '../backoff.ts';
import type { World } from '../context.ts';
import type { LoginBackoff } from '../login-backoff.ts';

/** Milliseconds for which a refused token counts once. */
const countedFor = 60_000;
const mostHeld = 10_000;

interface Origin {
  readonly tenant: string;
  readonly address: string;
}

export class WorkloadBrake {
  readonly #backoff: LoginBackoff;
  readonly #elapsed: World['elapsed'];
  /** When a token was refused to an origin, by both; oldest first. */
  readonly #refused = new Map<string, number>();

  constructor(backoff: LoginBackoff, elapsed: World['elapsed']) {
    this.#backoff = backoff;
    this.#elapsed = elapsed;
  }

  /** Throws `rate-limited` if the origin has to wait. */
  async attempt<T extends { readonly told: { readonly proven?: unknown } }>(
    origin: Origin,
    token: string,
    work: () => Promise<T>,
  ): Promise<T> {
    const turn = await this.#backoff.begin(origin);
    try {
      const outcome = await work();
      if (outcome.told.proven !== undefined) turn.succeeded();
      else this.#count(origin, hashSecret(token), turn);
      return outcome;
    } finally {
      turn.abandoned();
    }
  }

  #count({ tenant, address }: Origin, hash: string, turn: BackoffTurn): void {
    const name = `${tenant} ${address} ${hash}`;
    const now = this.#elapsed();
    const before = this.#refused.get(name);
    if (before !== undefined && now - before < countedFor) return;
    this.#refused.delete(name);
    const [oldest] = this.#refused.size >= mostHeld ? this.#refused.keys() : [];
    if (oldest !== undefined) this.#refused.delete(oldest);
    this.#refused.set(name, now);
    turn.failed();
  }
}
