// Hooks for a component's state: a value, a response of the service, a paginated list, an action. State setters ignore
// calls after unmount: hono/jsx re-inserts an unmounted component on its second update.
import { useEffect, useLayoutEffect, useState as useRawState, useRef } from 'hono/jsx/dom';
import { keptIn } from './kept.ts';

type Change<T> = T | ((now: T) => T);

export function useState<T>(initial: T | (() => T)): [T, (next: Change<T>) => void] {
  const [value, setRaw] = useRawState<T>(initial);
  const isGone = useRef(false);
  const set = useRef((next: Change<T>): void => {
    if (!isGone.current) setRaw(next);
  });
  useLayoutEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  return [value, set.current ?? setRaw];
}

type AnswerState<T> =
  | { readonly is: 'loading' }
  | { readonly is: 'failed'; readonly error: unknown }
  | { readonly is: 'ready'; readonly value: T };

export type Shown<T> = AnswerState<T> & {
  /** Fetches again; the old value stays until the response comes. */
  readonly reload: () => void;
};

export type Answer<T> = Shown<T> & {
  /** Sets a value that is already known, such as the response to a change. */
  readonly set: (value: T) => void;
};

/** Fetches on mount and whenever one of `about` changes; late responses are dropped. */
export function useAnswer<T>(load: (signal: AbortSignal) => Promise<T>, about: readonly unknown[] = []): Answer<T> {
  const [state, setState] = useState<AnswerState<T>>({ is: 'loading' });
  const ask = (): void =>
    request(
      (signal) =>
        load(signal).then(
          (value): AnswerState<T> => ({ is: 'ready', value }),
          (error: unknown): AnswerState<T> => ({ is: 'failed', error }),
        ),
      setState,
    );
  const request = useRequest(() => {
    setState({ is: 'loading' });
    ask();
  }, about);
  return { ...state, reload: ask, set: (value) => setState({ is: 'ready', value }) };
}

interface ListState<T> {
  readonly items: readonly T[];
  readonly is: 'loading' | 'failed' | 'ready';
  readonly error?: unknown;
  readonly next?: string | undefined;
  /** Set if a refresh failed: the list has to be fetched from its start. */
  readonly isStale?: boolean;
}

export interface List<T> extends Pick<ListState<T>, 'items' | 'is' | 'error'> {
  readonly hasMore: boolean;
  /** Fetches the next page. */
  readonly more: () => void;
  /** Fetches the loaded items again; the old ones stay until the response comes. */
  readonly again: () => void;
}

/** Age in milliseconds from which a list is fetched again when the user returns to the window. */
const staleAfter = 30_000;
/** Maximum number of items per response. */
const mostAtOnce = 10_000;

interface ListPage<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly hasMore: boolean; readonly nextCursor?: string };
}

/** A loader of pages, such as `(page, signal) => api.listKeyrings({ ...page }, { signal })`. */
export type LoadPage<T> = (
  page: { readonly cursor?: string; readonly limit: number },
  signal: AbortSignal,
) => Promise<ListPage<T>>;

interface ListOptions {
  /** Items per page. */
  readonly limit?: number;
  /** Keeps what is loaded for the session; the page shows it at once when it is opened again, and fetches it again. */
  readonly keep?: { readonly session: object; readonly as: string };
}

/**
 * Fetches the first page on mount and whenever one of `about` changes, and fetches the loaded items again when the user
 * returns to the window.
 */
export function useList<T>(
  load: LoadPage<T>,
  about: readonly unknown[] = [],
  { limit = 100, keep }: ListOptions = {},
): List<T> {
  const kept = keep && keptIn<ListState<T>>(keep.session, keep.as);
  const [state, setState] = useState<ListState<T>>(() => kept?.get() ?? { items: [], is: 'loading' });
  const ask = (before: readonly T[], cursor?: string): void =>
    request(
      (signal) =>
        load({ limit, ...(cursor !== undefined && { cursor }) }, signal).then(
          ({ data, pagination: { nextCursor } }): ListState<T> => ({
            items: [...before, ...data],
            is: 'ready',
            next: nextCursor,
          }),
          (error: unknown): ListState<T> => ({ items: before, is: 'failed', error, next: cursor }),
        ),
      setState,
    );
  const askedAt = useRef(0);
  const request = useRequest(() => {
    const before = kept?.get();
    setState(before ?? { items: [], is: 'loading' });
    askedAt.current = Date.now();
    if (before) askAgain(before.items);
    else ask([]);
  }, about);
  useEffect(() => {
    if (state.is === 'ready') kept?.set(state);
  }, [state]);
  const askAgain = (items = state.items): void => {
    askedAt.current = Date.now();
    request(
      (signal) =>
        load({ limit: Math.min(Math.max(limit, items.length), mostAtOnce) }, signal).then(
          ({ data, pagination: { nextCursor } }): ListState<T> => ({ items: data, is: 'ready', next: nextCursor }),
          (error: unknown): ListState<T> => ({ items, is: 'failed', error, isStale: true }),
        ),
      setState,
    );
  };
  // Kept in a ref, so that the listeners always see the latest state.
  const comeBack = useRef(() => {});
  comeBack.current = () => {
    const isOld = Date.now() - (askedAt.current ?? 0) > staleAfter;
    if (!document.hidden && isOld && state.is === 'ready') askAgain();
  };
  useEffect(() => {
    const lookAgain = (): void => comeBack.current?.();
    document.addEventListener('visibilitychange', lookAgain);
    window.addEventListener('focus', lookAgain);
    return () => {
      document.removeEventListener('visibilitychange', lookAgain);
      window.removeEventListener('focus', lookAgain);
    };
  }, []);
  const { items, is, error, next, isStale } = state;
  const again = (): void => {
    if (is === 'loading') return;
    setState({ ...state, is: 'loading' });
    askAgain();
  };
  return {
    items,
    is,
    error,
    hasMore: next !== undefined,
    more() {
      if (is === 'loading') return;
      if (isStale) return again();
      setState({ ...state, is: 'loading' });
      ask(items, next);
    },
    again,
  };
}

/** The beginning of a list, which came along with something else. */
interface Beginning<T> {
  readonly data: readonly T[];
  readonly hasMore: boolean;
}

/**
 * A list that came along with something else if it is short, and is fetched otherwise, or to refresh it. Without a
 * beginning, it is fetched.
 */
export function useBegunList<T>(begun: Beginning<T> | undefined, load: LoadPage<T>, options?: ListOptions): List<T> {
  const shown = useRef<Beginning<T>>(null);
  return useList(
    async (page, signal) => {
      if (!begun || begun.hasMore || shown.current === begun) return load(page, signal);
      shown.current = begun;
      return { data: begun.data, pagination: { hasMore: false } };
    },
    [begun],
    options,
  );
}

/** Most items that a list loads by itself, to be searched in the browser. */
export const mostSearched = 5000;

/** A list that loads all its pages, up to a maximum, and is kept under a name for the session. */
export function useWholeList<T>(load: LoadPage<T>, session: object, name: string): List<T> {
  return useWhole(useList(load, [name], { limit: 1000, keep: { session, as: name } }));
}

/** The list, of which all pages are loaded, up to a maximum. */
export function useWhole<T>(list: List<T>): List<T> {
  useEffect(() => {
    if (list.hasMore && list.is === 'ready' && list.items.length < mostSearched) list.more();
  });
  return list;
}

type Request = <T>(send: (signal: AbortSignal) => Promise<T>, set: (result: T) => void) => void;

/** One request at a time: a newer one aborts the previous, and unmounting aborts the last. */
function useRequest(begin: () => void, about: readonly unknown[]): Request {
  const latest = useRef<AbortController>(null);
  useEffect(() => {
    begin();
    return () => {
      latest.current?.abort();
      latest.current = null;
    };
  }, [...about]);
  return async (send, set) => {
    latest.current?.abort();
    const mine = new AbortController();
    latest.current = mine;
    const result = await send(AbortSignal.any([mine.signal, AbortSignal.timeout(30_000)]));
    if (latest.current === mine) set(result);
  };
}

interface Action<Input extends readonly unknown[]> {
  readonly isBusy: boolean;
  /** Error of the last run; undefined if it succeeded. */
  readonly error: unknown;
  /** Does nothing while a run is in progress; never rejects. */
  readonly start: (...input: Input) => Promise<void>;
  /** Clears the error. */
  readonly clear: () => void;
}

/** An action that is started by a click and never runs twice at once. `onError` is called once the error is set. */
export function useAction<Input extends readonly unknown[]>(
  run: (...input: Input) => Promise<void>,
  onError?: (error: unknown) => void,
): Action<Input> {
  const [{ isBusy, error }, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false });
  const underWay = useRef(false);
  const start = async (...input: Input): Promise<void> => {
    if (underWay.current) return;
    underWay.current = true;
    setState({ isBusy: true });
    try {
      await run(...input);
      setState({ isBusy: false });
    } catch (error) {
      setState({ isBusy: false, error });
      onError?.(error);
    }
    underWay.current = false;
  };
  return { isBusy, error, start, clear: () => setState({ isBusy }) };
}
