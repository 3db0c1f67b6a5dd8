// KeyWork is how an operation has costly work with keys done. Inside a transaction nothing waits, so work of more than
// some milliseconds is done before: the operation is rehearsed, what it asks for is done on another thread, and the
// operation then finds the results. If something changed in between, a little is done in place, and more is refused.

import { equalBytes } from '../crypto/bytes.ts';
import {
  heldOf,
  type KeyJobInput,
  type KeyJobName,
  type KeyJobResult,
  type Ordered,
  runKeyJob,
  type WorkResult,
  wipeHeld,
} from '../crypto/managed/key-work.ts';
import { generateKey, isRsaType, type ManagedKeyType } from '../crypto/managed/keys.ts';
import { KmsError } from '../errors.ts';
import type { World } from './context.ts';

export interface KeyWork {
  run<Name extends KeyJobName>(name: Name, input: KeyJobInput<Name>): KeyJobResult<Name>;
  /** A new key in the form in which it is kept. One of RSA only work done beforehand can make. */
  newKey(type: ManagedKeyType): Uint8Array;
}

/** Does all work where it is asked for. */
export function inPlace({ random }: Pick<World, 'random'>): KeyWork {
  return {
    // Derivations by a password are long, and foreseen by each rehearsal.
    run: (name, input) => (name === 'passwordKey' ? changedMeanwhile() : runKeyJob(name, input, random)),
    newKey: (type) => (isRsaType(type) ? changedMeanwhile() : generateKey(type, random)),
  };
}

function changedMeanwhile(): never {
  throw new KmsError('unavailable', 'the key changed meanwhile; try again', { retryAfter: 1 });
}

/** Ends a rehearsal: what comes next depends on the result. */
class Unfinished extends Error {}

/** Whether an error only says that a rehearsal cannot go on. */
export function isUnfinished(error: unknown): boolean {
  return error instanceof Unfinished;
}

/** Work of which some results are there, those of each name in the order of its orders. */
class PreparedWork {
  readonly #left = new Map<Ordered['name'], Done[]>();

  /** @param done the last of each name first. */
  constructor(done: readonly Done[]) {
    for (const each of done.toReversed()) {
      const same = this.#left.get(each.order.name);
      if (same) same.push(each);
      else this.#left.set(each.order.name, [each]);
    }
  }

  /** The result of that order. Any that were ordered before it on a wrong guess are skipped. */
  take(order: Ordered): WorkResult | undefined {
    const left = this.#left.get(order.name) ?? [];
    const at = left.findLastIndex((each) => isSame(each.order, order));
    if (at < 0) return undefined;
    const [found] = left.splice(at, 1);
    return found?.result;
  }
}

export interface Done {
  readonly order: Ordered;
  readonly result: WorkResult;
}

/** Jobs done in place after a rehearsal that did not foresee them: at most some 70 ms of the slowest. */
const mostUnforeseen = 8;

/** Work that finds the results of a rehearsal. */
export function preparedWork(done: readonly Done[], world: Pick<World, 'random'>): KeyWork {
  const prepared = new PreparedWork(done);
  const rest = inPlace(world);
  let unforeseen = 0;
  return {
    run(name, input) {
      // Cast: the result of an order of that name.
      const result = prepared.take({ name, input } as Ordered);
      if (result) return resultValue(result) as KeyJobResult<typeof name>;
      return ++unforeseen > mostUnforeseen ? changedMeanwhile() : rest.run(name, input);
    },
    newKey(type) {
      const result = prepared.take({ name: 'generate', type });
      return result ? (resultValue(result) as Uint8Array) : rest.newKey(type);
    },
  };
}

/** Overwrites the keys and results of a rehearsal. */
export function wipeDone(done: readonly Done[]): void {
  for (const { order, result } of done) {
    if ('value' in result && result.value instanceof Uint8Array) result.value.fill(0);
    if ('input' in order) wipeHeld(order.input);
  }
}

/** Results that stand for those of work still to be done; a rehearsal goes on with them, and is undone. */
const placeholders = {
  seal: new Uint8Array(0),
  open: undefined,
  sign: new Uint8Array(0),
  verify: false,
  oaepEncrypt: new Uint8Array(0),
  oaepDecrypt: undefined,
} as const;

/** Bytes in place of a key that was not derived yet, or undefined if the result cannot be guessed. */
function guessed(
  name: KeyJobName,
  input: KeyJobInput<KeyJobName>,
  { random }: Pick<World, 'random'>,
): Uint8Array | undefined {
  return name === 'passwordKey' && 'length' in input ? random(input.length) : undefined;
}

function isGuess(value: unknown, guesses: readonly Uint8Array[]): boolean {
  return value instanceof Uint8Array && guesses.some((guess) => equalBytes(guess, value));
}

/**
 * Work that collects what is not done yet. For a key to make, a key of its type that was made already stands for it,
 * so that a batch orders all of its keys at once; nothing else is ordered after that, since it could depend on them.
 */
export function rehearsedWork(done: readonly Done[], orders: Ordered[], world: Pick<World, 'random'>): KeyWork {
  const prepared = new PreparedWork(done);
  const guesses: Uint8Array[] = [];
  let isGuessing = false;
  return {
    run(name, input) {
      const result = prepared.take({ name, input } as Ordered);
      if (result) return resultValue(result) as KeyJobResult<typeof name>;
      const guess = guessed(name, input, world);
      // Work with a guessed key is ordered once the real one is there.
      const isOnGuess = Object.values(input).some((value) => isGuess(value, guesses));
      if (isOnGuess || (isGuessing && !guess)) throw new Unfinished();
      orders.push({ name, input: heldOf(input) } as Ordered);
      if (guess) {
        isGuessing = true;
        guesses.push(guess.slice());
        return guess as KeyJobResult<typeof name>;
      }
      if (Object.hasOwn(placeholders, name)) {
        return placeholders[name as keyof typeof placeholders] as KeyJobResult<typeof name>;
      }
      throw new Unfinished();
    },
    newKey(type) {
      const order = { name: 'generate', type } as const;
      const result = prepared.take(order);
      if (result) return resultValue(result) as Uint8Array;
      orders.push(order);
      const known = done.find((each) => isSame(each.order, order) && 'value' in each.result);
      if (!known) throw new Unfinished();
      isGuessing = true;
      return resultValue(known.result) as Uint8Array;
    },
  };
}

/** A copy, since the operation may wipe what it gets, and is run again. */
function resultValue(result: WorkResult): unknown {
  if ('error' in result) throw result.error;
  return result.value instanceof Uint8Array ? result.value.slice() : result.value;
}

/** Whether two orders are the same: of the same name, with the same bytes and options. */
function isSame(one: unknown, other: unknown): boolean {
  if (one instanceof Uint8Array || other instanceof Uint8Array) {
    return one instanceof Uint8Array && other instanceof Uint8Array && equalBytes(one, other);
  }
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => isSame(Reflect.get(one, name), Reflect.get(other, name)));
}
