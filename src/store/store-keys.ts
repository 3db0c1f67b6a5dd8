// The keys that a store seals its files with, as it wants them handed in. A tenant's keys fit by their shape.

export type StoreKeyLabel = 'log' | 'snapshot' | 'activity';

export interface StoreKeys {
  /** New files are made under this one. Fits 16 bits. */
  readonly epoch: number;
  /** The 32-byte key for `label` in `epoch` (default: the current one). Throws `not-found` for an epoch that is not held. */
  key(label: StoreKeyLabel, epoch?: number): Uint8Array;
}
