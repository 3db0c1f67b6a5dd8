// The work that one message asks for, counted in one place: each kind of it has a bound, whatever operations and items
// it is spread over. What an item was refused for counts as well, since it was asked for.
import { laterReasons, Refusal, reasons } from './reasons.ts';

interface Bound {
  readonly most: number;
  readonly reason: number;
  readonly words: string;
}

const bounds = {
  /** Rounds of hashes in derivations, 64 bytes of data as one: a second or two of a core, not of this thread. */
  rounds: {
    most: 1_000_000,
    reason: reasons.invalidField,
    words: 'rounds of a hash in one message, counted for each block of the hash',
  },
  /** Values and their fields that searches compare: half a second, in many turns. */
  compared: {
    most: 10_000_000,
    reason: reasons.permissionDenied,
    words: 'values compared by the searches of one message',
  },
  /** Bytes wrapped by other keys: half a second, not of this thread where they are many. */
  wrapped: { most: 1_048_576, reason: reasons.permissionDenied, words: 'bytes wrapped in one message' },
  /** Bytes of the answers to all items. */
  answered: { most: 4_194_304, reason: reasons.responseTooLarge, words: 'bytes of answers to one message' },
} as const satisfies Record<string, Bound>;

type Kind = keyof typeof bounds;

/** Objects looked at in one message after which no other search begins. */
const mostSearched = 5000;
/** Bytes of attributes that count as one object more. */
const attributeBytes = 4096;
/** Comparisons that take as long as looking at one object. */
const comparisons = 100;
/** Objects looked at in one turn of the event loop. */
const lookedAtOnce = 200;

export class Effort {
  readonly #spent: Record<Kind, number> = { rounds: 0, compared: 0, wrapped: 0, answered: 0 };
  #searched = 0;
  /** Part of the turn that is gone, in objects looked at. */
  #turn = 0;

  /** Counts work before it is done. Throws `Refusal` if the message asks for too much of it. */
  spend(kind: Kind, amount: number): void {
    this.#spent[kind] += amount;
    const { most, reason, words } = bounds[kind];
    if (this.#spent[kind] <= most) return;
    const later = reason === reasons.responseTooLarge ? reason : laterReasons.serverLimitExceeded;
    throw new Refusal(reason, `expected at most ${most} ${words}`, later);
  }

  /** Throws `Refusal` if the searches before this one looked at enough. */
  beginSearch(): void {
    if (this.#searched < mostSearched) return;
    throw new Refusal(
      reasons.permissionDenied,
      `the searches of a message end after ${mostSearched} objects: search in another message`,
      laterReasons.serverLimitExceeded,
    );
  }

  /** Counts an object that a search looks at, wanted or not, with so many bytes of attributes. */
  look(bytes: number): void {
    const weight = 1 + Math.floor(bytes / attributeBytes);
    this.#searched += weight;
    this.#turn += weight;
  }

  /** Counts a comparison. Throws `Refusal`. */
  compare(amount: number): void {
    this.spend('compared', amount);
    this.#turn += amount / comparisons;
  }

  /** Whether a search is to let others have a turn now; the next one begins then. */
  isTurnOver(): boolean {
    if (this.#turn < lookedAtOnce) return false;
    this.#turn = 0;
    return true;
  }
}
