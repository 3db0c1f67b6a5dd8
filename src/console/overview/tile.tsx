// A part of the overview: what it is about, and what is known of it or why nothing is.
import { type Child, type PropsWithChildren, useEffect, useId } from 'hono/jsx/dom';
import { KmsError } from '../../errors.ts';
import { type Answer, Failed, Loading } from '../parts/answer.tsx';

export interface TileProps {
  readonly title: string;
  /** Over the whole width. */
  readonly isWide?: boolean;
  /** Beside the title. */
  readonly beside?: Child;
}

export function Tile({ title, isWide = false, beside, children }: PropsWithChildren<TileProps>) {
  const id = useId();
  return (
    <section aria-labelledby={id} data-tile={isWide ? 'wide' : ''}>
      <div data-bar>
        <h2 id={id}>{title}</h2>
        {beside}
      </div>
      {children}
    </section>
  );
}

export interface TileAnswerProps<T> {
  readonly of: Answer<T>;
  /** What one would see with the flag that is missing: `the activity log`. */
  readonly what: string;
  readonly show: (value: T) => Child;
}

/** What came; where it was refused, who could change that. */
export function TileAnswer<T>({ of, what, show }: TileAnswerProps<T>) {
  if (of.is === 'loading') return <Loading key="loading" />;
  if (of.is === 'ready') return <div key="ready">{show(of.value)}</div>;
  if (of.error instanceof KmsError && of.error.code === 'forbidden') {
    return (
      <p key="refused" data-quiet>
        You are not allowed to see {what}: {of.error.message}. Whoever administers this service can grant it.
      </p>
    );
  }
  return <Failed key="failed" error={of.error} onRetry={of.reload} />;
}

/** Asks again when the turn changes; what is there stays until the answer comes. */
export function useTurn({ reload }: Pick<Answer<unknown>, 'reload'>, turn: number): void {
  useEffect(() => {
    if (turn > 0) reload();
  }, [turn]);
}
