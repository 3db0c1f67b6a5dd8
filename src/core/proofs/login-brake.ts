// WorkloadBrake slows rubbish at logins of programs down, by address alone: tokens cannot be guessed, and who sends
// rubbish must not lock a program out, neither by its name nor from its address. So each try is checked, and only one
// that fails is told to wait. Tries with one refused token count less, since clients try again.
import { hashSecret } from '../../crypto/secrets.ts';
import { networksOf } from '../../model/addresses.ts';
import type { World } from '../context.ts';
import type { LoginBackoff } from '../login-backoff.ts';

/** Milliseconds for which a refused token, or a record, is remembered. */
const rememberedFor = 60_000;
const mostHeld = 10_000;
/** Tries with one refused token, of which one counts. */
const oneOf = 10;

interface LoginOrigin {
  readonly tenant: string;
  readonly address: string;
}

/** A login that is braked: the same proof for another API key is another try. */
interface LoginTry {
  readonly token: string;
  readonly role: string | undefined;
}

export class WorkloadBrake {
  readonly #backoff: LoginBackoff;
  /** Refused tokens of an origin, by both. */
  readonly #refused: Recent;
  readonly #recorded: Recent;

  constructor(backoff: LoginBackoff, elapsed: World['elapsed']) {
    this.#backoff = backoff;
    this.#refused = new Recent(elapsed);
    this.#recorded = new Recent(elapsed);
  }

  /**
   * Runs the check of a token. A refused one is counted, and so is one that cannot be checked; a good one is let in
   * however many failed before it, and is no success before `forgive`. Throws `rate-limited` for one that fails while
   * its origin has to wait; of those, one that was just refused is not checked again.
   */
  async attempt<T extends { readonly proven?: unknown }>(
    origin: LoginOrigin,
    asked: LoginTry,
    work: () => Promise<T>,
  ): Promise<T> {
    const wait = this.#backoff.refusal(origin);
    if (wait && this.#refused.has(nameOf(origin, asked))) throw wait;
    let outcome: T;
    try {
      outcome = await work();
    } catch (error) {
      await this.#count(origin, asked);
      throw error;
    }
    if (outcome.proven === undefined) await this.#count(origin, asked);
    return outcome;
  }

  /** Whether tries from an origin that fail are told to wait now. */
  hasToWait(origin: LoginOrigin): boolean {
    return this.#backoff.refusal(origin) !== undefined;
  }

  /** Clears the counts of an origin from which a login succeeded. */
  forgive(origin: LoginOrigin): void {
    this.#backoff.forgive(origin);
  }

  /**
   * Whether a refusal was recorded within the last minute, after which it counts as recorded: by API key and check, not
   * by the content, so that strangers who know the name of a key cannot fill its records.
   */
  isRecorded({ tenant, address }: LoginOrigin, what: readonly (string | undefined)[]): boolean {
    const hashed = hashSecret(JSON.stringify(what));
    return this.#recorded.note(`${tenant} ${networksOf(address).host} ${hashed}`) > 1;
  }

  async #count(origin: LoginOrigin, asked: LoginTry): Promise<void> {
    const turn = await this.#backoff.begin(origin);
    const tries = this.#refused.note(nameOf(origin, asked));
    if (tries === 1 || tries % oneOf === 0) turn.failed();
    else turn.abandoned();
  }
}

function nameOf({ tenant, address }: LoginOrigin, { token, role = '' }: LoginTry): string {
  return `${tenant} ${address} ${hashSecret(token)} ${hashSecret(role)}`;
}

/** Names that came within the last minute, counted from the first. */
class Recent {
  readonly #elapsed: World['elapsed'];
  /** Oldest first. */
  readonly #names = new Map<string, { readonly at: number; times: number }>();

  constructor(elapsed: World['elapsed']) {
    this.#elapsed = elapsed;
  }

  has(name: string): boolean {
    return this.#of(name) !== undefined;
  }

  /** Returns how often the name came. */
  note(name: string): number {
    const known = this.#of(name);
    if (known) return ++known.times;
    this.#names.delete(name);
    const [oldest] = this.#names.size >= mostHeld ? this.#names.keys() : [];
    if (oldest !== undefined) this.#names.delete(oldest);
    this.#names.set(name, { at: this.#elapsed(), times: 1 });
    return 1;
  }

  #of(name: string) {
    const known = this.#names.get(name);
    return known && this.#elapsed() - known.at < rememberedFor ? known : undefined;
  }
}
