// Messages to and from worker threads: plain data for the structured clone.

import type { Worker } from 'node:worker_threads';
import type { Argon2Cost } from '../../crypto/primitives.ts';
import { type ErrorCode, KmsError } from '../../errors.ts';
import type { CheckpointJob } from '../../store/checkpoint.ts';
import type { SegmentCheck } from '../../store/port.ts';
import type { StoreKeyLabel, StoreKeys } from '../../store/store-files.ts';
import type { CryptoChoice } from '../native-crypto.ts';
import type { SourceData } from '../store-url.ts';

/** A store's keys as data: the current epoch and every key held. */
export interface KeysAsData {
  readonly epoch: number;
  readonly held: readonly { readonly label: StoreKeyLabel; readonly epoch: number; readonly key: Uint8Array }[];
}

/** Makes a checkpoint for each order, until it is told to end: see checkpoint.ts. */
export interface CheckpointWork {
  readonly kind: 'checkpoints';
  /** The data directory, or the database, to which the thread makes its own connection. */
  readonly place: { readonly root: string } | { readonly source: SourceData };
  readonly wasm: Uint8Array;
}

export interface CheckpointOrder {
  /** The store's directory there. */
  readonly dir: string;
  readonly keys: KeysAsData;
  readonly job: CheckpointJob;
}

/** Hashes passwords until it is told to end: see passwords.ts. */
export interface PasswordWork {
  readonly kind: 'passwords';
}

/** Works with managed keys until it is told to end: see key-work.ts. */
export interface ManagedKeyWork {
  readonly kind: 'keys';
  /** Whether the process has RSA, which a command has without the rest of node:crypto. */
  readonly hasRsa: boolean;
}

/** Derives 32 bytes from a passphrase, or answers with an error: see passwords.ts. */
export interface PassphraseWork {
  readonly kind: 'passphrase';
  readonly passphrase: string;
  readonly salt: Uint8Array;
  readonly cost: Argon2Cost;
}

/** Verifies a segment of an activity log for each order, until it is told to end: see segments.ts. */
export interface SegmentsWork {
  readonly kind: 'segments';
  /** The data directory. */
  readonly root: string;
}

export interface SegmentOrder {
  readonly check: SegmentCheck;
  readonly keys: KeysAsData;
  /** The whole file, if it is not in the data directory. */
  readonly bytes?: Uint8Array | undefined;
}

/** The work of a thread; appliance/worker.ts lists all kinds. */
export interface Job {
  readonly kind: string;
}

/** The data that a thread is started with. */
export interface WorkerData<W extends Job = Job> {
  readonly work: W;
  readonly crypto: CryptoChoice;
}

export type WorkAnswerOf<R> =
  | { readonly ok: true; readonly result: R }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string | undefined };

/** The result in an answer; throws the thread's error. */
export function resultOf<R>(answer: WorkAnswerOf<R>): R {
  if (answer.ok) return answer.result;
  const { code, message, hint } = answer;
  throw new KmsError(code, message, hint === undefined ? {} : { hint });
}

const labels: readonly StoreKeyLabel[] = ['log', 'snapshot', 'activity'];

export function keysAsData(keys: StoreKeys): KeysAsData {
  const epochs = Array.from({ length: keys.epoch }, (_, i) => i + 1);
  return { epoch: keys.epoch, held: epochs.flatMap((epoch) => labels.flatMap((label) => heldKey(keys, label, epoch))) };
}

export function keysFromData({ epoch: current, held }: KeysAsData): StoreKeys {
  return {
    epoch: current,
    key(label, epoch = current) {
      const found = held.find((each) => each.label === label && each.epoch === epoch);
      if (!found) throw new KmsError('not-found', `no key of epoch ${epoch}`);
      return found.key;
    },
  };
}

function heldKey(keys: StoreKeys, label: StoreKeyLabel, epoch: number): KeysAsData['held'] {
  try {
    return [{ label, epoch, key: keys.key(label, epoch) }];
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return [];
    throw error;
  }
}

/** The next answer of a thread; `whose` says in words what the thread is for. */
export function answerOf<A>(worker: Worker, whose: string): Promise<A> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number): void =>
      settle(() => reject(new KmsError('internal', `the thread of ${whose} ended early, with code ${code}`)));
    const onError = (error: unknown): void => settle(() => reject(error));
    const onMessage = (answer: A): void => settle(() => resolve(answer));
    const settle = (done: () => void): void => {
      worker.off('exit', onExit).off('error', onError).off('message', onMessage);
      done();
    };
    worker.on('exit', onExit).on('error', onError).on('message', onMessage);
  });
}
