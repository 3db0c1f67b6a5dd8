// What a change of an API key comes to, before it is made.
import type { InputOf } from '../../client/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import type { Difference } from './key-change.ts';

export interface PlannedChange {
  readonly flags: readonly Difference[];
  readonly props: readonly Difference[];
  /** Where it moves. */
  readonly accountId?: string;
  readonly input: InputOf<'updateApiKey'>;
}

export interface ConfirmChangeProps {
  readonly planned: PlannedChange;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

export function ConfirmChange({ planned, onConfirm, onClose }: ConfirmChangeProps) {
  const { flags, props, accountId } = planned;
  return (
    <Dialog title="What will change" onClose={onClose}>
      <Differences title="Flags" differences={flags} />
      <Differences title="Properties" differences={props} />
      {accountId !== undefined && (
        <p>
          The key will belong to the account <code>{accountId}</code>.
        </p>
      )}
      <Form
        action="Change the key"
        busy="Changing it…"
        onSubmit={onConfirm}
        beside={
          <button type="button" data-kind="quiet" onClick={onClose}>
            Back
          </button>
        }
      />
    </Dialog>
  );
}

function Differences({ title, differences }: { readonly title: string; readonly differences: readonly Difference[] }) {
  if (differences.length === 0) return <p data-quiet>{title} stay as they are.</p>;
  return (
    <>
      <h3>{title}</h3>
      <ul data-plain data-differences>
        {differences.map(({ name, kind }) => (
          <li key={name}>
            <span data-tag data-tone={kind === 'added' ? 'good' : kind === 'removed' ? 'bad' : 'warn'}>
              {kind}
            </span>{' '}
            <code>{name}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
