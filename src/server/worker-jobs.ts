// What is sent to a worker thread and what it sends back: plain data that the structured clone takes.
import type { CheckpointJob, CheckpointResult } from '../store/checkpoint.ts';
import type { StoreKeyLabel } from '../store/store-keys.ts';

/** A store's keys as data: the epoch in force and every key held. */
export interface KeysAsData {
  readonly epoch: number;
  readonly held: readonly { readonly label: StoreKeyLabel; readonly epoch: number; readonly key: Uint8Array }[];
}

export interface CheckpointWork {
  readonly kind: 'checkpoint';
  /** The data directory. */
  readonly root: string;
  readonly keys: KeysAsData;
  readonly wasm: Uint8Array;
  readonly job: CheckpointJob;
}

/** Hashes passwords until it is told to end: see password-worker.ts. */
export interface PasswordWork {
  readonly kind: 'passwords';
}

export type Work = CheckpointWork | PasswordWork;

export type WorkAnswer =
  | { readonly ok: true; readonly result: CheckpointResult }
  | { readonly ok: false; readonly code: string; readonly message: string };
