// The rehearsal of an operation with costly work: it runs in a transaction that is undone, and what it asks for is done
// on another thread, until nothing is left to do. Then it runs for good, and finds the results.

import type { KeyItem } from '../api/key-operations.ts';
import { cipherIn, isFast } from '../crypto/managed/ciphers.ts';
import type { Ordered, WorkResult } from '../crypto/managed/key-work.ts';
import type { KeyType } from '../model/key-types.ts';
import type { Transaction } from '../store/port.ts';
import type { Slices } from '../store/sql.ts';
import type { Context } from './context.ts';
import { type Done, isUnfinished, type KeyWork, preparedWork, rehearsedWork, wipeDone } from './key-work.ts';

interface From {
  readonly tenant: string;
  readonly caller: string;
  /** Whether the client has ended its connection. */
  readonly isGone?: (() => boolean) | undefined;
}

/** Does orders elsewhere, in order. */
export interface KeyWorker {
  run(orders: readonly Ordered[], from: From): Promise<readonly WorkResult[]>;
}

/** Parts of a rehearsal's context, beside the transaction. */
type Actors = Pick<Context, 'caller' | 'tenant' | 'world' | 'address' | 'dialect' | 'isLocal'>;

interface Rehearsal {
  readonly actors: Actors;
  readonly worker: KeyWorker;
  transactionInSlices(work: (tx: Transaction) => Slices<never>): Promise<never>;
  readonly operation: (ctx: Context, work: KeyWork) => Slices<unknown>;
}

/** Passes that find new work: the first key of each type to make, the others, then work with them. */
const mostPasses = 12;

class Undone extends Error {}

interface Rehearsed {
  /** Work in which all that the operation will ask for is done. */
  readonly work: KeyWork;
  /** Overwrites what is left of it. */
  wipe(): void;
}

export async function rehearse(rehearsal: Rehearsal): Promise<Rehearsed> {
  const done: Done[] = [];
  const wipe = () => wipeDone(done);
  try {
    await doAll(rehearsal, done);
  } catch (error) {
    wipe();
    throw error;
  }
  return { work: preparedWork(done, rehearsal.actors.world), wipe };
}

async function doAll({ actors, worker, transactionInSlices, operation }: Rehearsal, done: Done[]): Promise<void> {
  const { tenant, caller } = actors;
  for (let pass = 0; pass < mostPasses; pass++) {
    const orders: Ordered[] = [];
    await transactionInSlices(function* (tx) {
      const ctx: Context = { ...actors, tx, note() {}, handsOut() {}, touches() {}, did() {} };
      try {
        yield* operation(ctx, rehearsedWork(done, orders, actors.world));
      } catch (error) {
        // The operation fails again when it runs for good, perhaps for want of what is ordered.
        if (orders.length > 0 && !isUnfinished(error)) throw new Undone();
      }
      throw new Undone();
    }).catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error;
    });
    if (orders.length === 0) return;
    const results = await worker.run(orders, { tenant: tenant.id, caller: caller.id });
    for (const [n, order] of orders.entries()) {
      const result = results[n];
      if (result) done.push({ order, result });
    }
  }
}

/** Processor time of one piece of work, in microseconds, as measured on a machine with 2 cores. */
interface Cost {
  readonly make: number;
  readonly read: number;
  /** The same with a hash made elsewhere, which no platform takes. */
  readonly prehashed?: number;
}

/** The types whose work is done elsewhere if there is much of it; that of all others is done in place. */
const costs: Partial<Record<KeyType, Cost>> = {
  'rsa-2048': { make: 1000, read: 60 },
  'rsa-3072': { make: 3000, read: 100 },
  'rsa-4096': { make: 6500, read: 150 },
  'ecdsa-p256': { make: 60, read: 120, prehashed: 1500 },
  'ecdsa-p384': { make: 500, read: 700, prehashed: 4000 },
  'ecdsa-p521': { make: 900, read: 1500, prehashed: 8000 },
  'ecdsa-secp256k1': { make: 400, read: 500, prehashed: 1500 },
  ed25519: { make: 60, read: 120 },
  'ml-dsa-44': { make: 800, read: 400 },
  'ml-dsa-65': { make: 1200, read: 500 },
  'ml-dsa-87': { make: 1500, read: 700 },
};

/** Microseconds that work may take in place. */
const shortWork = 2000;

/** Microseconds that AES-KWP takes for each character of base64. */
const wrapCost = 0.7;

/** Characters of base64 that noble encrypts or decrypts in some milliseconds. A batch of shorter ones is in slices. */
const longestInPlace = 128 * 1024;

function isLongMessage({ plaintext = '', ciphertext = '' }: KeyItem): boolean {
  return Math.max(plaintext.length, ciphertext.length) > longestInPlace;
}

interface Asked {
  readonly items?: readonly KeyItem[] | undefined;
  readonly prehashed?: boolean | undefined;
  /** Base64 to wrap or unwrap. */
  readonly plaintext?: string | undefined;
  readonly wrapped?: string | undefined;
  /** The type of a key pair to make. */
  readonly pair?: KeyType | undefined;
  /** Whether a message is encrypted under another key, perhaps of RSA. */
  readonly toKey?: string | undefined;
  /** Whether several versions may have to be tried. */
  readonly anyVersion?: boolean | undefined;
}

/**
 * Kinds of work with a key: making something with the secret half of an asymmetric key, encrypting to its public half,
 * or reading what was made.
 */
export type WorkKind = 'make' | 'encrypt' | 'read';

/** Whether work with a key of the type is to be done elsewhere. RSA always is where a new key may be needed first. */
export function isLongWork(
  type: KeyType,
  kind: WorkKind,
  { items, prehashed, plaintext = '', wrapped = '', pair, toKey, anyVersion }: Asked,
): boolean {
  if (pair?.startsWith('rsa-') || toKey !== undefined) return true;
  if (type.startsWith('rsa-') && kind !== 'read') return true;
  const cipher = cipherIn(type);
  if (cipher && items && !isFast(cipher)) return items.some(isLongMessage);
  const { make, read, prehashed: other }: Cost = costs[type] ?? { make: 0, read: 0 };
  const each = prehashed && other !== undefined ? other : kind === 'make' ? make : read;
  return (
    each * (anyVersion ? 5 : 1) * (items?.length ?? 1) + wrapCost * (plaintext.length + wrapped.length) > shortWork
  );
}
