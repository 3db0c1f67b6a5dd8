// One answer of the appliance, from the moment it is asked for: `useAnswer` asks, `Loaded` shows what came, or that nothing did.
import { type Child, useEffect, useRef } from 'hono/jsx/dom';
import { troubleText } from '../trouble.ts';
import { useState } from './state.ts';

export type Answer<T> = (
  | { readonly is: 'loading' }
  | { readonly is: 'failed'; readonly error: unknown }
  | { readonly is: 'ready'; readonly value: T }
) & {
  /** Asks again; what is there stays until the answer comes. */
  readonly reload: () => void;
  /** Puts in place what is known already, such as the answer to a change. */
  readonly set: (value: T) => void;
};

type State<T> = { is: 'loading' } | { is: 'failed'; error: unknown } | { is: 'ready'; value: T };

/** Asks when the part appears and whenever one of `about` changes; an answer that comes too late is dropped. */
export function useAnswer<T>(load: (signal: AbortSignal) => Promise<T>, about: readonly unknown[] = []): Answer<T> {
  const [state, setState] = useState<State<T>>({ is: 'loading' });
  const asking = useRef<AbortController>(null);

  const ask = async (): Promise<void> => {
    asking.current?.abort();
    const mine = new AbortController();
    asking.current = mine;
    const result = await load(AbortSignal.any([mine.signal, AbortSignal.timeout(30_000)])).then(
      (value): State<T> => ({ is: 'ready', value }),
      (error: unknown): State<T> => ({ is: 'failed', error }),
    );
    if (asking.current === mine) setState(result);
  };

  useEffect(() => {
    setState({ is: 'loading' });
    void ask();
    return () => {
      asking.current?.abort();
      asking.current = null;
    };
  }, [...about]);

  return { ...state, reload: () => void ask(), set: (value) => setState({ is: 'ready', value }) };
}

export interface LoadedProps<T> {
  readonly of: Answer<T>;
  readonly show: (value: T) => Child;
}

export function Loaded<T>({ of, show }: LoadedProps<T>) {
  if (of.is === 'loading') return <Loading key="loading" />;
  if (of.is === 'failed') return <Failed key="failed" error={of.error} onRetry={of.reload} />;
  return <div key="ready">{show(of.value)}</div>;
}

export function Loading() {
  return (
    <p role="status" data-loading>
      Loading…
    </p>
  );
}

export interface FailedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** What went wrong, with the server's words, and a way to try again. */
export function Failed({ error, onRetry }: FailedProps) {
  return (
    <div role="alert" data-note data-tone="bad">
      <p>{troubleText(error)}</p>
      {onRetry && (
        <button type="button" data-kind="quiet" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
