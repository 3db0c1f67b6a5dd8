// ReadStore is a store that was recovered into memory, with nothing changed yet where it is kept, so that it can be
// looked at before it is put in service.
import type { Mark } from '../model/store-mark.ts';
import type { Store } from './port.ts';
import type { Row } from './sql.ts';
import type { State } from './state.ts';

export interface ReadStore<T extends object> {
  readonly mark: Mark;
  /** The last log file. */
  readonly log: string;
  /**
   * What a constant statement that reads answers; `queryFor` is told how many migrations the database has behind it.
   */
  rows<R extends Row>(queryFor: (schema: number) => string): readonly R[];
  /** Puts it in service, which is when the first file may change. When that fails, all of it is let go. */
  open(): Promise<Store<T>>;
  /** Lets go of it, unless it was opened. */
  discard(): Promise<void>;
}

interface Recovered<S> extends Pick<ReadStore<object>, 'mark' | 'log'> {
  readonly state: State;
  readonly onClosed: () => Promise<void>;
  /** Makes the driver, which is put in service by `open`, and lets go of all that it has when it is closed. */
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
