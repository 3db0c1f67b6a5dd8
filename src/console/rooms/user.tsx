// One user: who they are, what they may do, their API keys; inviting them again and deleting them.

import type { User } from '../../api/user.ts';
import { hrefTo } from '../address.ts';
import { Failed, Loading, useAnswer } from '../parts/answer.tsx';
import { Button } from '../parts/button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { Json } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { toast } from '../parts/toast.tsx';
import { InviteAgain } from '../people/invite-again.tsx';
import { UserFlags } from '../people/user-flags.tsx';
import { UserForm } from '../people/user-form.tsx';
import type { RoomProps } from '../room.ts';

export function UserRoom({ api, session, navigate, params }: RoomProps) {
  const username = params.username ?? '';
  const answer = useAnswer((signal) => api.getUser({ username }, { signal }));
  const [open, setOpen] = useState<'invite' | 'delete' | undefined>(undefined);
  const user = answer.is === 'ready' ? answer.value : undefined;
  const isSelf = user !== undefined && user.id === session.user?.id;
  const close = (): void => setOpen(undefined);

  return (
    <>
      <PageHeader
        title={user?.displayName ?? username}
        windowTitle={`User ${user?.displayName ?? username}`}
        back={{ href: hrefTo('users'), title: 'Users' }}
        lead={isSelf && 'This is you.'}
        actions={
          user &&
          !isSelf && (
            <>
              <Button kind="quiet" needs="user.invite" onClick={() => setOpen('invite')}>
                Invite again…
              </Button>
              <Button kind="danger" needs="user.delete" onClick={() => setOpen('delete')}>
                Delete…
              </Button>
            </>
          )
        }
      />
      {answer.is === 'loading' && <Loading key="loading" />}
      {answer.is === 'failed' && <Failed key="failed" error={answer.error} onRetry={answer.reload} />}
      {user && <Person key="person" {...{ api, user, isSelf }} onChanged={answer.set} />}
      {user && <UserFlags key="flags" {...{ api, user, session }} onChanged={answer.set} />}
      {user && <Keys key="keys" user={user} />}
      {user && open === 'invite' && <InviteAgain key="invite" api={api} user={user} onClose={close} />}
      {user && open === 'delete' && (
        <ConfirmByName
          key="delete"
          title={`Delete ${user.displayName}?`}
          name={user.username}
          action="Delete the user"
          busy="Deleting…"
          onClose={close}
          onConfirm={async () => {
            await api.deleteUser({ username: user.username });
            toast(`The user ${user.username} is deleted.`);
            navigate(hrefTo('users'));
          }}
        >
          <p>
            All sessions of this user end, and the API keys that belong to them are disabled. This cannot be undone.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

interface PersonProps extends Pick<RoomProps, 'api'> {
  readonly user: User;
  readonly isSelf: boolean;
  readonly onChanged: (user: User) => void;
}

function Person({ api, user, isSelf, onChanged }: PersonProps) {
  const [isEditing, setEditing] = useState(false);
  return (
    <section data-panel>
      <div data-bar>
        <h2>Who they are</h2>
        {!isEditing && (
          <Button kind="quiet" needs={isSelf ? undefined : 'user.update'} onClick={() => setEditing(true)}>
            Change
          </Button>
        )}
      </div>
      {isEditing ? (
        <UserForm
          key="edit"
          {...{ api, user }}
          onClose={() => setEditing(false)}
          onSaved={(changed) => {
            onChanged(changed);
            setEditing(false);
            toast('The user is saved.');
          }}
        />
      ) : (
        <Facts
          key="show"
          facts={[
            ['User name', <bdi>{user.username}</bdi>],
            ['First name', <bdi>{user.firstName}</bdi>],
            ['Last name', <bdi>{user.lastName}</bdi>],
            ['E-mail address', <bdi>{user.email}</bdi>],
            ['Id', <Copyable text={user.id} what="the id of the user" />],
            ['Properties', <Json value={user.props} />],
          ]}
        />
      )}
    </section>
  );
}

function Keys({ user }: { readonly user: User }) {
  return (
    <section data-panel>
      <h2>API keys of this user</h2>
      {user.keys.length === 0 ? (
        <p data-quiet>None. An API key belongs to the user who makes it while logged in.</p>
      ) : (
        <ul>
          {user.keys.map((id) => (
            <li key={id}>
              <a href={hrefTo('apikey', { id })}>
                <code>{id}</code>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
