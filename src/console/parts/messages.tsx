// Messages to the user: loading, results, errors, and short notices about what was done. All of them reach screen
// readers too.
import { type Child, useEffect } from 'hono/jsx/dom';
import { approvalIn, errorText } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { type Answer, useState } from './state.ts';

/** Announces a text to screen readers without moving the focus, through the live region in the page. */
export function announce(text: string): void {
  const region = document.querySelector('body > [role=status]');
  if (region) region.textContent = text;
}

interface Toast {
  readonly id: number;
  readonly text: string;
  /** Takes back what the notice is about. */
  readonly undo?: (() => Promise<void>) | undefined;
}

const shownFor = 9000;
const undoableFor = 15_000;
let count = 0;
let show: ((toast: Toast | undefined) => void) | undefined;

let latest: Toast | undefined;

/**
 * Shows a notice that disappears on its own; nothing important is said only there. `undo` adds a button that takes the
 * change back.
 */
export function toast(text: string, undo?: () => Promise<void>): void {
  latest = { id: ++count, text, undo };
  show?.(latest);
}

/**
 * Clears the notice of a page that is left, unless it offers to undo something. A notice made while navigating is shown
 * on the next page.
 */
export function endToasts(): void {
  if (!latest?.undo) show?.(undefined);
}

/** The place for toasts, once in the shell. */
export function Toasts() {
  const [shown, setShown] = useState<Toast | undefined>(undefined);
  useEffect(() => {
    show = setShown;
  }, []);
  useEffect(() => {
    if (!shown) return;
    const timer = setTimeout(() => setShown(undefined), shown.undo ? undoableFor : shownFor);
    return () => clearTimeout(timer);
  }, [shown]);
  const undo = async (): Promise<void> => {
    const { undo } = shown ?? {};
    setShown(undefined);
    latest = undefined;
    await undo?.().catch((error: unknown) => toast(`It could not be undone. ${errorText(error)}`));
  };
  return (
    <div role="status" data-toasts>
      {shown && (
        <p key={shown.id}>
          {shown.text}{' '}
          {shown.undo && (
            <button type="button" data-kind="link" onClick={() => void undo()}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  );
}

interface LoadedProps<T> {
  readonly of: Answer<T>;
  readonly show: (value: T) => Child;
}

/** Shows the value, or that it is loading or failed. */
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

/** An error's text, with a link to the approval request that it names. */
export function ErrorWords({ error }: { readonly error: unknown }) {
  const waiting = approvalIn(error);
  return (
    <span>
      {errorText(error)}
      {waiting && (
        <span key="request">
          {' '}
          <a href={hrefTo('approval', { id: waiting.id })}>See the request</a>
        </span>
      )}
    </span>
  );
}

interface FailedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** An error with the server's message, and a button to try again. */
export function Failed({ error, onRetry }: FailedProps) {
  return (
    <div role="alert" data-note data-tone={approvalIn(error) ? 'warn' : 'bad'}>
      <p>
        <ErrorWords error={error} />
      </p>
      {onRetry && (
        <button type="button" data-kind="quiet" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows the error of an action, if there is one. */
export function ActionError({ error }: { readonly error: unknown }) {
  if (error === undefined) return null;
  return (
    <p role="alert" data-note data-tone={approvalIn(error) ? 'warn' : 'bad'}>
      <ErrorWords error={error} />
    </p>
  );
}
