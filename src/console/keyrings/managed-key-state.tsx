// The state of a managed key: what it allows, and the actions that change it. Before one that stops the work of others,
// the dialog says who they are.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { type KeyState, stateAfter } from '../../model/key-states.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Field, Select } from '../parts/fields.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';
import { Time } from '../parts/values.tsx';
import { StateTag } from './managed-key-parts.tsx';
import { type Dependents, isInUse, UseNotice } from './managed-key-use.tsx';
import { deletionHindrance, stateWords } from './managed-key-words.ts';

export interface KeyStateProps {
  readonly api: Client;
  readonly ring: ManagedKey;
  readonly dependents: Dependents;
  readonly onChanged: (key: ManagedKey) => void;
}

type NewState = 'active' | 'suspended' | 'deactivated' | 'compromised';

interface Move {
  readonly move: 'activate' | 'resume' | 'suspend' | 'deactivate' | 'compromise';
  readonly state: NewState;
  readonly button: string;
  readonly title: (name: string) => string;
  readonly action: string;
  readonly effect: string;
  readonly done: string;
  /** Whether others are refused from then on. */
  readonly stops?: boolean;
  readonly kind?: 'danger';
}

const moves: readonly Move[] = [
  {
    move: 'activate',
    state: 'active',
    button: 'Activate…',
    title: (name) => `Activate ${name}?`,
    action: 'Activate the key',
    effect: 'From now on it does everything that it is for.',
    done: 'The key is active.',
  },
  {
    move: 'resume',
    state: 'active',
    button: 'Resume…',
    title: (name) => `Resume ${name}?`,
    action: 'Resume the key',
    effect: 'From now on it does everything that it is for again.',
    done: 'The key is active again.',
  },
  {
    move: 'suspend',
    state: 'suspended',
    button: 'Suspend…',
    title: (name) => `Suspend ${name}?`,
    action: 'Suspend the key',
    effect: 'It does nothing until you resume it.',
    done: 'The key is suspended.',
    stops: true,
  },
  {
    move: 'deactivate',
    state: 'deactivated',
    button: 'Deactivate…',
    title: (name) => `Deactivate ${name}?`,
    action: 'Deactivate the key',
    effect:
      'It makes nothing new any more, but still decrypts, unwraps and verifies what is there. It never becomes active again.',
    done: 'The key is deactivated.',
    stops: true,
    kind: 'danger',
  },
  {
    move: 'compromise',
    state: 'compromised',
    button: 'Mark as compromised…',
    title: (name) => `Mark ${name} as compromised?`,
    action: 'Mark it as compromised',
    effect:
      'It makes nothing new any more. What it still decrypts, unwraps and verifies comes with a warning. It never becomes active again.',
    done: 'The key is marked as compromised.',
    stops: true,
    kind: 'danger',
  },
];

/** Changes of state that are possible from this one. */
export function movesFrom(state: KeyState): readonly Move[] {
  return moves.filter(({ move }) => 'state' in stateAfter(state, move, undefined));
}

export function KeyStatePanel(props: KeyStateProps) {
  const { ring } = props;
  const [asked, setAsked] = useState<Move | undefined>(undefined);
  const needs = `key.${ring.name}.state`;
  const { restorableUntil } = ring;
  return (
    <section data-panel>
      <h2>State</h2>
      <p>
        <StateTag state={ring.state} /> {stateWords(ring.state).means}
        {ring.state === 'pending-deletion' && restorableUntil !== undefined && (
          <span key="until">
            {' '}
            You can restore it until <Time at={restorableUntil} />.
          </span>
        )}
      </p>
      <div data-actions>
        {movesFrom(ring.state).map((move) => (
          <Button key={move.move} kind={move.kind ?? 'quiet'} needs={needs} onClick={() => setAsked(move)}>
            {move.button}
          </Button>
        ))}
        {ring.state === 'pending-deletion' && <Restore key="restore" {...props} />}
      </div>
      {asked && <ChangeState key="ask" {...props} move={asked} onClose={() => setAsked(undefined)} />}
    </section>
  );
}

function Restore({ api, ring, onChanged }: KeyStateProps) {
  const { isBusy, error, start } = useAction(async () => {
    onChanged((await api.restoreManagedKey({ id: ring.id })).key);
    toast('The key is back, in the state that it was in.');
  });
  return (
    <>
      <Button kind="quiet" needs={`key.${ring.name}.delete`} isBusy={isBusy} onClick={() => void start()}>
        Restore it
      </Button>
      <ActionError error={error} />
    </>
  );
}

interface ChangeStateProps extends KeyStateProps {
  readonly move: Move;
  readonly onClose: () => void;
}

function ChangeState({ api, ring, dependents, onChanged, move, onClose }: ChangeStateProps) {
  const { state, title, action, effect, done, stops, kind } = move;
  const set = async (next: NewState, used: boolean): Promise<void> => {
    onChanged((await api.setManagedKeyState({ key: ring.name, state: next, ...(used && { used }) })).key);
  };
  const resume = async (): Promise<void> => {
    await set('active', false);
    toast('The key is active again.');
  };
  return (
    <Confirm
      title={title(ring.displayName)}
      {...{ action, kind, onClose }}
      busy="Changing its state…"
      onConfirm={async () => {
        await set(state, stops === true && isInUse(dependents));
        onClose();
        toast(done, state === 'suspended' ? resume : undefined);
      }}
    >
      <p>{effect}</p>
      {stops && <UseNotice of={dependents} />}
    </Confirm>
  );
}

const dayChoices = [7, 14, 30] as const;

interface DeleteKeyProps extends Pick<KeyStateProps, 'api' | 'ring' | 'dependents'>, Pick<PageProps, 'navigate'> {
  readonly onClose: () => void;
}

/** Asks for the name, and for how long the key can be restored. */
export function DeleteKey({ api, ring, dependents, navigate, onClose }: DeleteKeyProps) {
  const { name, displayName } = ring;
  const [days, setDays] = useState('30');
  if (!ring.deletionAllowed) {
    return (
      <Dialog key="hindered" title={`Delete ${displayName}?`} onClose={onClose}>
        <p>{deletionHindrance}</p>
        <button type="button" data-kind="quiet" onClick={onClose}>
          Close
        </button>
      </Dialog>
    );
  }
  return (
    <Confirm
      title={`Delete ${displayName}?`}
      action="Delete the managed key"
      busy="Deleting it…"
      kind="danger"
      needs={`key.${name}.delete`}
      onClose={onClose}
      fields={
        <>
          <Select
            name="days"
            label="It can be restored for"
            value={days}
            onChange={setDays}
            options={dayChoices.map((each): [string, string] => [`${each}`, `${each} days`])}
          />
          <Field name="name" label={`Type ${name} to confirm`} isRequired />
        </>
      }
      onConfirm={async (values) => {
        if (values.text('name') !== name) throw new FieldProblems({ name: `Type ${name} exactly as shown.` });
        const used = isInUse(dependents);
        const { id } = await api.deleteManagedKey({
          key: name,
          days: Number(days),
          ...(used && { used }),
        });
        navigate(hrefTo('managedKeys', {}, { deleted: id, name }));
        toast(`Deleted ${displayName}.`, async () => {
          await api.restoreManagedKey({ id });
          navigate(hrefTo('managedKey', { name }));
          toast(`${displayName} is back.`);
        });
      }}
    >
      <p>
        It does nothing from then on. Until that time is over you can restore it on the page Managed keys; then its keys
        are erased, and what only they could open is lost for ever.
      </p>
      <UseNotice of={dependents} />
    </Confirm>
  );
}
