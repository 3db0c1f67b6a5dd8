// ReadStore is a store recovered into memory, unchanged on disk, so that it can be inspected before it is put in
// service.
import type { Mark } from '../model/store-mark.ts';
import type { Store } from './port.ts';
import type { Row } from './sql.ts';
import type { State } from './state.ts';

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

interface Recovered<S> extends Pick<ReadStore<object>, 'mark' | 'log'> {
  readonly state: State;
  readonly onClosed: () => Promise<void>;
  /** Makes the driver. `open` puts it in service; closing it releases everything it has. */
  driver(): S;
  open(driver: S): Promise<void>;
}

export function readStore<T extends object, S extends Store<T>>(recovered: Recovered<S>): ReadStore<T> {
  const { mark, log, state, onClosed } = recovered;
  let isOpen = false;
  return {
    mark,
    log,
    rows: (queryFor) => state.all(state.statement(queryFor(state.schemaVersion)), []),
    async open() {
      isOpen = true;
      const store = recovered.driver();
      try {
        await recovered.open(store);
        return store;
      } catch (error) {
        await store.close().catch(() => {});
        state.close();
        throw error;
      }
    },
    async discard() {
      if (isOpen) return;
      state.close();
      await onClosed();
    },
  };
}
