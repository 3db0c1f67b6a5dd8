// What a user may do, shown flag by flag, and changed with the editor of flags.

import type { User } from '../../api/user.ts';
import type { Client } from '../../client/client.ts';
import { draftOf, draftProblems, flagsOf, grantOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { Button } from '../parts/button.tsx';
import { FieldProblems, Form } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';
import { toast } from '../parts/toast.tsx';
import type { Session } from '../session.ts';

export interface UserFlagsProps {
  readonly api: Client;
  readonly user: User;
  readonly session: Session;
  readonly onChanged: (user: User) => void;
}

export function UserFlags({ api, user, session, onChanged }: UserFlagsProps) {
  const [draft, setDraft] = useState<ReturnType<typeof draftOf> | undefined>(undefined);
  const save = async (changed: ReturnType<typeof draftOf>): Promise<void> => {
    const [problem] = draftProblems(changed);
    if (problem !== undefined) throw new FieldProblems({ flags: problem });
    onChanged(await api.updateUser({ username: user.username, flags: flagsOf(changed) }));
    setDraft(undefined);
    toast('The permissions are saved.');
  };
  return (
    <section data-panel>
      <div data-bar>
        <h2>Permissions</h2>
        {!draft && (
          <Button kind="quiet" needs="user.update" onClick={() => setDraft(draftOf(user.flags))}>
            Change permissions
          </Button>
        )}
      </div>
      {draft ? (
        <Form
          key="edit"
          action="Save permissions"
          busy="Saving…"
          onSubmit={() => save(draft)}
          beside={
            <button type="button" data-kind="quiet" onClick={() => setDraft(undefined)}>
              Cancel
            </button>
          }
        >
          <FlagEditor draft={draft} onChange={setDraft} mine={session.flags} />
        </Form>
      ) : (
        <FlagList key="show" flags={user.flags} />
      )}
    </section>
  );
}

function FlagList({ flags }: { readonly flags: Readonly<Record<string, unknown>> }) {
  const names = Object.keys(flags);
  if (names.length === 0) return <p data-quiet>None: this user can log in, and change who they are.</p>;
  return (
    <ul>
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>{' '}
          <span data-quiet>
            {flags[name] === true ? (grantOf(name) ?? 'not a flag of this service') : 'not granted'}
          </span>
        </li>
      ))}
    </ul>
  );
}
