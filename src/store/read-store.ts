// ReadStore is a store recovered into memory, unchanged on disk, so that it can be inspected before it is put in
// service.
import type { Mark } from '../model/store-mark.ts';
import type { Store } from './port.ts';
import type { Row } from './sql.ts';

export interface ReadStore<T extends object> {
  readonly mark: Mark;
  /** The last log file. */
  readonly log: string;
  /** The rows that a constant, reading statement returns; `queryFor` gets the number of migrations done. */
  rows<R extends Row>(queryFor: (schema: number) => string): readonly R[];
  /** Puts the store in service; only now may a file change. If that fails, everything is released. */
  open(): Promise<Store<T>>;
  /** Releases the store, unless it was opened. */
  discard(): Promise<void>;
}
