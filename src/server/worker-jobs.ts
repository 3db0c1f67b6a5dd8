// What is sent to a worker thread and what it sends back: plain data that the structured clone takes.
import type { PassphraseCost } from '../crypto/passphrase.ts';
import type { ErrorCode } from '../errors.ts';
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { HeldFile } from '../store/hold.ts';
import type { StoreKeyLabel } from '../store/store-keys.ts';
import type { Summary } from './backup/manifest.ts';
import type { Proof } from './backup/prove.ts';

/** A store's keys as data: the epoch in force and every key held. */
export interface KeysAsData {
  readonly epoch: number;
  readonly held: readonly { readonly label: StoreKeyLabel; readonly epoch: number; readonly key: Uint8Array }[];
}

/** Makes a checkpoint for each order that it is sent, until it is told to end: see checkpoint-thread.ts. */
export interface CheckpointWork {
  readonly kind: 'checkpoints';
  /** The data directory. */
  readonly root: string;
  readonly wasm: Uint8Array;
}

export interface CheckpointOrder {
  readonly keys: KeysAsData;
  readonly job: CheckpointJob;
}

/** Hashes passwords until it is told to end: see password-worker.ts. */
export interface PasswordWork {
  readonly kind: 'passwords';
}

/** Answers the 32 bytes that a passphrase makes, or in words why it does not: see custody/passphrase-thread.ts. */
export interface PassphraseWork {
  readonly kind: 'passphrase';
  readonly passphrase: string;
  readonly salt: Uint8Array;
  readonly cost: PassphraseCost;
}

/** Proves a backup: see backup/trial.ts. */
export interface ProveWork {
  readonly kind: 'prove';
  /** The directory of the backup file, and its name there. */
  readonly root: string;
  readonly name: string;
  readonly keys: readonly (readonly [dir: string, keys: KeysAsData])[];
  readonly summary: Summary;
  readonly wasm: Uint8Array;
  /** Restored into this directory first, which goes away again. */
  readonly restoreTo: string | undefined;
}

export type ProveAnswer =
  | { readonly ok: true; readonly result: Proof }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string; readonly hint: string | undefined };

/** Examines stores that are held: see doctor/served.ts. */
export interface ExamineWork {
  readonly kind: 'examine';
  /** The data directory. */
  readonly root: string;
  readonly held: readonly HeldFile[];
  readonly keys: readonly (readonly [dir: string, keys: KeysAsData])[];
  readonly wasm: Uint8Array;
  /** Epoch milliseconds. */
  readonly now: number;
}

export type Work = CheckpointWork | PasswordWork | PassphraseWork | ProveWork | ExamineWork;

export type WorkAnswer = WorkAnswerOf<CheckpointResult>;

export type WorkAnswerOf<R> =
  | { readonly ok: true; readonly result: R }
  | { readonly ok: false; readonly code: string; readonly message: string };
