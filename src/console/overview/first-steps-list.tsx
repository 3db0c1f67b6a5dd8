// FirstSteps shows the checklist of a first run on the overview, until every step is done or the list is hidden.
import { useId } from 'hono/jsx/dom';
import type { AnswerTo } from '../../client/client.ts';
import { hrefTo } from '../navigation.ts';
import { announce } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { Copyable } from '../parts/values.tsx';
import type { Session } from '../session.ts';
import { firstSteps, keepMark, keptMarks, type Mark, type Step } from './first-steps.ts';

interface FirstStepsProps {
  readonly found: AnswerTo<'getOverview'>;
  readonly session: Session;
}

export function FirstSteps({ found, session }: FirstStepsProps) {
  const id = useId();
  // An appliance that does not tell its id is told apart by the page's address alone.
  const appliance = found.readiness.appliance ?? '';
  const [marks, setMarks] = useState(() => keptMarks(localStorage, appliance));
  const steps = firstSteps(found, session.may, marks);
  const done = steps.filter(({ isDone }) => isDone).length;
  if (marks.has('hidden') || done === steps.length) return null;
  const mark = (which: Mark): void => {
    setMarks(keepMark(localStorage, appliance, which));
    // The button that was pressed is gone.
    document.querySelector('h1')?.focus();
    announce(which === 'hidden' ? 'The first steps are hidden.' : 'Done.');
  };
  return (
    <section aria-labelledby={id} data-steps>
      <div data-bar>
        <h2 id={id}>First steps</h2>
        <span data-quiet>
          {done} of {steps.length} done
        </span>
        <button type="button" data-kind="link" onClick={() => mark('hidden')}>
          Hide this list
        </button>
      </div>
      <ol>
        {steps.map((step) => (
          <StepItem key={step.name} step={step} onDone={() => mark('masterKey')} />
        ))}
      </ol>
    </section>
  );
}

interface StepItemProps {
  readonly step: Step;
  readonly onDone: () => void;
}

function StepItem({ step: { title, why, isDone, by, isMarked }, onDone }: StepItemProps) {
  if (isDone) {
    return (
      <li data-step="done">
        <span>
          {title}
          <span data-spoken>: done</span>
        </span>
      </li>
    );
  }
  return (
    <li data-step="">
      <div data-step-text>
        <b>{title}</b>
        <p>
          {why} {'command' in by && <Copyable text={by.command} what={by.what} isLong />}
        </p>
      </div>
      {'page' in by && (
        <a href={hrefTo(by.page)} data-button data-kind="quiet" aria-label={`${by.title}: ${title}`}>
          {by.title}
        </a>
      )}
      {isMarked && (
        <button type="button" data-kind="quiet" aria-label={`Done: ${title}`} onClick={onDone}>
          Done
        </button>
      )}
    </li>
  );
}
