// How far the work on a file is, and what came of it.
import type { Child } from 'hono/jsx/dom';
import { useHold } from '../hold.ts';
import { bytesText } from '../overview/amounts.ts';
import type { Work } from './use-work.ts';

export interface WorkViewProps<Answer> {
  readonly work: Work<Answer>;
  /** What is being done: `Encrypting`. */
  readonly doing: string;
  readonly show: (answer: Answer) => Child;
}

export function WorkView<Answer>({ work, doing, show }: WorkViewProps<Answer>) {
  switch (work.is) {
    case 'idle':
      return null;
    case 'running':
      return (
        <section key="running" data-panel aria-label="Progress">
          <Hold />
          <p>
            {doing}: {bytesText(work.read)} of {bytesText(work.size)}.
          </p>
          <progress max={Math.max(1, work.size)} value={work.read} aria-label={doing} />
          <div data-actions>
            <button type="button" data-kind="quiet" onClick={work.stop}>
              Stop
            </button>
          </div>
        </section>
      );
    case 'stopped':
      return (
        <p key="stopped" data-note role="status">
          Stopped. Nothing was saved.
        </p>
      );
    case 'failed':
      return (
        <p key="failed" data-note data-tone="bad" role="alert">
          {work.text} Nothing was saved.
        </p>
      );
    case 'done':
      return (
        <section key="done" data-note data-tone="good" aria-label="Result">
          <p>{work.saved}</p>
          {show(work.answer)}
        </section>
      );
  }
}

/** To leave the page would end the work. */
function Hold() {
  useHold();
  return null;
}
