// KeyWork is how an operation has costly work with keys done. Inside a transaction nothing waits, so work of more than
// some milliseconds is done before: the operation is rehearsed, what it asks for is done on another thread, and the
// operation then finds the results. If something changed in between, the work is done in place.

import { equalBytes } from '../crypto/bytes.ts';
import {
  type KeyJobInput,
  type KeyJobName,
  type KeyJobResult,
  type Ordered,
  runKeyJob,
  type WorkResult,
} from '../crypto/managed/key-work.ts';
import type { RsaType } from '../crypto/managed/rsa-keys.ts';
import { KmsError } from '../errors.ts';
import type { World } from './context.ts';

export interface KeyWork {
  run<Name extends KeyJobName>(name: Name, input: KeyJobInput<Name>): KeyJobResult<Name>;
  /** A new RSA key, PKCS #8 DER, which only work done beforehand can make. */
  newRsaKey(type: RsaType): Uint8Array;
}

/** Does all work where it is asked for. */
export function inPlace({ random }: Pick<World, 'random'>): KeyWork {
  return { run: (name, input) => runKeyJob(name, input, random), newRsaKey: changedMeanwhile };
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

/** Work of which some results are there, in the order of the orders. */
class PreparedWork {
  readonly #done: readonly Done[];
  #next = 0;

  constructor(done: readonly Done[]) {
    this.#done = done;
  }

  /** The result of that order, if it is the next one. */
  take(order: Ordered): WorkResult | undefined {
    const next = this.#done[this.#next];
    if (!next || !isSame(next.order, order)) return undefined;
    this.#next++;
    return next.result;
  }
}

export interface Done {
  readonly order: Ordered;
  readonly result: WorkResult;
}

/** Work that finds the results of a rehearsal. */
export function preparedWork(done: readonly Done[], world: Pick<World, 'random'>): KeyWork {
  const prepared = new PreparedWork(done);
  const rest = inPlace(world);
  return {
    run(name, input) {
      // Cast: the result of an order of that name.
      const result = prepared.take({ name, input } as Ordered);
      return result ? (resultValue(result) as KeyJobResult<typeof name>) : rest.run(name, input);
    },
    newRsaKey(type) {
      const result = prepared.take({ name: 'generate', type });
      return result ? (resultValue(result) as Uint8Array) : changedMeanwhile();
    },
  };
}

/** Results that stand for those of work still to be done; a rehearsal goes on with them, and is undone. */
const placeholders = { sign: new Uint8Array(0), verify: false, oaepDecrypt: undefined } as const;

/** Work that collects what is not done yet. */
export function rehearsedWork(done: readonly Done[], orders: Ordered[]): KeyWork {
  const prepared = new PreparedWork(done);
  return {
    run(name, input) {
      const result = prepared.take({ name, input } as Ordered);
      if (result) return resultValue(result) as KeyJobResult<typeof name>;
      // The tenant's keys own an opened key, and may overwrite it meanwhile.
      const held = 'key' in input ? { ...input, key: input.key.slice() } : input;
      orders.push({ name, input: held } as Ordered);
      if (Object.hasOwn(placeholders, name)) {
        return placeholders[name as keyof typeof placeholders] as KeyJobResult<typeof name>;
      }
      throw new Unfinished();
    },
    newRsaKey(type) {
      const order = { name: 'generate', type } as const;
      const result = prepared.take(order);
      if (result) return resultValue(result) as Uint8Array;
      orders.push(order);
      throw new Unfinished();
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
