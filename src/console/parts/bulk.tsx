// BulkBar offers actions on the rows that are selected. Each asks first, runs for one item after the other, and names
// those for which it failed.
import { type Child, useRef } from 'hono/jsx/dom';
import { errorText } from '../error-text.ts';
import { Button } from './button.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import type { FormValues } from './form.tsx';
import { announce, ErrorWords, Failed, Loading, toast } from './messages.tsx';
import { useAnswer, useState } from './state.ts';

export interface BulkAction<T> {
  /** Label of the button, such as `Disable…`. */
  readonly label: string;
  readonly needs?: string;
  readonly kind?: 'danger';
  readonly title: (count: string) => string;
  /** Why it cannot be done for an item, which is then named and left out. */
  readonly hindrance?: (item: T) => string | undefined;
  /** Looks up, before it asks, what it means for the items that were selected. */
  readonly look?: (items: readonly T[], signal: AbortSignal) => Promise<Looked<T>>;
  /** Says what it means for these items. */
  readonly about: (items: readonly T[]) => Child;
  readonly fields?: Child;
  /** Label of the button that confirms it. */
  readonly action: string;
  /** Checks the fields once; throws `FieldProblems`. */
  readonly check?: (values: FormValues) => void;
  readonly run: (item: T, values: FormValues) => Promise<unknown>;
  readonly undo?: (item: T) => Promise<unknown>;
  readonly done: (count: string) => string;
}

/** Facts that were looked up about the items: they add to what is known of them. */
type Looked<T> = Partial<Pick<BulkAction<T>, 'hindrance' | 'about'>>;

interface BulkBarProps<T> {
  readonly items: readonly T[];
  readonly nameOf: (item: T) => string;
  /** `2 API keys` */
  readonly countOf: (count: number) => string;
  readonly actions: readonly BulkAction<T>[];
  /** Called after changes, so that the list is fetched again. */
  readonly onChanged: () => void;
  readonly onClear: () => void;
}

export function BulkBar<T>(props: BulkBarProps<T>) {
  const { items, countOf, actions, onClear } = props;
  const [open, setOpen] = useState<BulkAction<T> | undefined>(undefined);
  return (
    <section aria-label="Selection" data-bulk>
      <span role="status">{countOf(items.length)} selected</span>
      {actions.map((action) => (
        <Button key={action.label} kind={action.kind ?? 'quiet'} needs={action.needs} onClick={() => setOpen(action)}>
          {action.label}
        </Button>
      ))}
      <button type="button" data-kind="link" onClick={onClear}>
        Clear the selection
      </button>
      {open && <BulkDialog key={open.label} {...props} action={open} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

interface Failure {
  readonly name: string;
  readonly text: string;
  /** The service's refusal, if it was asked. */
  readonly error?: unknown;
}

/** Names shown at most before the rest is counted. */
const mostNamed = 10;

type BulkDialogProps<T> = BulkBarProps<T> & { readonly action: BulkAction<T>; readonly onClose: () => void };

function BulkDialog<T>(props: BulkDialogProps<T>) {
  const { items, nameOf, countOf, action, onChanged, onClear, onClose } = props;
  // The selection at the time it was opened, whatever the list shows in the meantime.
  const selection = useRef(items).current ?? items;
  const looked = useAnswer(async (signal): Promise<Looked<T>> => (await action.look?.(selection, signal)) ?? {});
  const found = looked.is === 'ready' ? looked.value : {};
  const hindrance = (item: T) => action.hindrance?.(item) ?? found.hindrance?.(item);
  const chosen = selection.filter((item) => hindrance(item) === undefined);
  const leftOut = selection.flatMap((item) => {
    const text = hindrance(item);
    return text === undefined ? [] : [{ name: nameOf(item), text }];
  });
  const [results, setResults] = useState<Results<T>>({ done: [], failed: [] });
  const { failed: failures } = results;
  const finish = (): void => {
    onClose();
    onClear();
  };

  const run = async (values: FormValues): Promise<void> => {
    action.check?.(values);
    const { done, failed } = await forEach(chosen, nameOf, (item) => action.run(item, values));
    if (failed.length > 0) {
      announce(`${done.length} of ${done.length + failed.length} done.`);
      setResults({ done, failed });
    } else {
      finishWith(done);
    }
  };

  /**
   * Those that are done can be taken back, even if it was not done for all. The list is fetched again only now: without
   * the selected rows, this dialog would go too.
   */
  const finishWith = (done: readonly T[]): void => {
    finish();
    onChanged();
    if (done.length > 0) toast(action.done(countOf(done.length)), action.undo && (() => undoAll(done)));
  };

  const undoAll = async (done: readonly T[]): Promise<void> => {
    const { undo = async () => {} } = action;
    const { failed } = await forEach(done, nameOf, undo);
    onChanged();
    const [first] = failed;
    toast(first ? `Not undone for ${failed.map(({ name }) => name).join(', ')}. ${first.text}` : 'Undone.');
  };

  if (failures.length > 0) {
    return (
      <Dialog
        key="failed"
        title={`${countOf(failures.length)} could not be changed`}
        onClose={() => finishWith(results.done)}
      >
        {results.done.length > 0 && <p key="done">{action.done(countOf(results.done.length))}</p>}
        <p key="failed">Not done:</p>
        <Failures of={failures} />
        <button type="button" data-kind="quiet" onClick={() => finishWith(results.done)}>
          Close
        </button>
      </Dialog>
    );
  }
  if (action.look && looked.is !== 'ready') {
    return (
      <Dialog key="looking" title={action.title(countOf(selection.length))} onClose={onClose}>
        {looked.is === 'loading' ? (
          <Loading key="loading" />
        ) : (
          <Failed key="failed" error={looked.error} onRetry={looked.reload} />
        )}
      </Dialog>
    );
  }
  if (chosen.length === 0) {
    return (
      <Dialog key="hindered" title={action.title(countOf(leftOut.length))} onClose={onClose}>
        <p>This is not possible now:</p>
        <Failures of={leftOut} />
        <button type="button" data-kind="quiet" onClick={onClose}>
          Close
        </button>
      </Dialog>
    );
  }
  return (
    <Confirm
      key="ask"
      title={action.title(countOf(chosen.length))}
      action={action.action}
      kind={action.kind}
      needs={action.needs}
      onConfirm={run}
      onClose={onClose}
      fields={action.fields}
    >
      <Names names={chosen.map(nameOf)} />
      {action.about(chosen)}
      {found.about?.(chosen)}
      {leftOut.length > 0 && (
        <div key="left out" data-note data-tone="warn">
          <p>{countOf(leftOut.length)} left out:</p>
          <Failures of={leftOut} />
        </div>
      )}
    </Confirm>
  );
}

function Failures({ of }: { readonly of: readonly Failure[] }) {
  return (
    <ul data-failures>
      {of.map(({ name, text, error }, index) => (
        <li key={index}>
          <bdi>{name}</bdi>: {error === undefined ? text : <ErrorWords error={error} />}
        </li>
      ))}
    </ul>
  );
}

function Names({ names }: { readonly names: readonly string[] }) {
  const more = names.length - mostNamed;
  return (
    <ul data-names>
      {names.slice(0, mostNamed).map((name, index) => (
        <li key={index}>
          <bdi>{name}</bdi>
        </li>
      ))}
      {more > 0 && <li key="more">and {more} more</li>}
    </ul>
  );
}

interface Results<T> {
  readonly done: readonly T[];
  readonly failed: readonly Failure[];
}

async function forEach<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  run: (item: T) => Promise<unknown>,
): Promise<Results<T>> {
  const done: T[] = [];
  const failed: Failure[] = [];
  for (const item of items) {
    try {
      await run(item);
      done.push(item);
    } catch (error) {
      failed.push({ name: nameOf(item), text: errorText(error), error });
    }
  }
  return { done, failed };
}
