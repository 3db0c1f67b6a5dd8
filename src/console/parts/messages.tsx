// Messages are what the console tells of its own work: that something is loading, what came of it, what went wrong, and
// short words about what was done. All are told to those who see and to those who hear.
import { type Child, useEffect } from 'hono/jsx/dom';
import { errorText } from '../error-text.ts';
import { type Answer, useState } from './state.ts';

/** Says something to those who hear the page, without moving them: by the live region that the page came with. */
export function announce(text: string): void {
  const region = document.querySelector('body > [role=status]');
  if (region) region.textContent = text;
}

interface Toast {
  readonly id: number;
  readonly text: string;
}

const shownFor = 9000;
let count = 0;
let show: ((toast: Toast | undefined) => void) | undefined;

/** Shows a line that goes by itself; nothing is said in it alone. */
export function toast(text: string): void {
  show?.({ id: ++count, text });
}

/** For whoever leaves a page: what was said on it goes. What a page says on its way to another one is said there. */
export function endToasts(): void {
  show?.(undefined);
}

/** Where toasts are shown: stands once in the shell. */
export function Toasts() {
  const [shown, setShown] = useState<Toast | undefined>(undefined);
  useEffect(() => {
    show = setShown;
  }, []);
  useEffect(() => {
    if (!shown) return;
    const timer = setTimeout(() => setShown(undefined), shownFor);
    return () => clearTimeout(timer);
  }, [shown]);
  return (
    <div role="status" data-toasts>
      {shown && <p key={shown.id}>{shown.text}</p>}
    </div>
  );
}

interface LoadedProps<T> {
  readonly of: Answer<T>;
  readonly show: (value: T) => Child;
}

/** What came, or that nothing has come. */
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

interface FailedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** What went wrong, with the server's words, and a way to try again. */
export function Failed({ error, onRetry }: FailedProps) {
  return (
    <div role="alert" data-note data-tone="bad">
      <p>{errorText(error)}</p>
      {onRetry && (
        <button type="button" data-kind="quiet" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What an action threw, if it threw anything. */
export function ActionError({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  return (
    <p role="alert" data-note data-tone="bad">
      {errorText(error)}
    </p>
  );
}
