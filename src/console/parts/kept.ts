// Kept lists: what a session's pages have loaded, so that Back shows it again at once, and how many rows were shown.
// They end with the session: another user never sees them.

interface Kept<T> {
  get(): T | undefined;
  set(value: T): void;
}

const bySession = new WeakMap<object, Map<string, unknown>>();

/** The value kept under this name for a session, which its client stands for. */
export function keptIn<T>(session: object, name: string): Kept<T> {
  const values = bySession.get(session) ?? new Map<string, unknown>();
  bySession.set(session, values);
  return {
    get: () => values.get(name) as T | undefined, // one name always has one type
    set: (value) => {
      values.set(name, value);
    },
  };
}
