// UserPage shows one user with their permissions and API keys; it changes, invites again or deletes them.
import type { User } from '../../api/users.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { draftOf, draftProblems, emptyDraft, flagsOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { FlagList } from '../flags/flag-list.tsx';
import { useNamesByResource } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { JsonField } from '../parts/fields.tsx';
import { EditPanel, Form } from '../parts/form.tsx';
import { Failed, Loading, toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { Copyable, Facts, Json, Moment } from '../parts/values.tsx';
import type { Session } from '../session.ts';
import { PersonFields, personIn } from './new-user-page.tsx';
import { DeleteUser, UsersKeys } from './users-keys.tsx';
import { Invited } from './users-page.tsx';

export function UserPage({ api, session, navigate, params }: PageProps) {
  const username = params.username ?? '';
  const answer = useAnswer((signal) => api.getUser({ username, apikeys: true }, { signal }));
  const [open, setOpen] = useState<'invite' | 'delete' | undefined>(undefined);
  const user = answer.is === 'ready' ? answer.value : undefined;
  const isSelf = user !== undefined && user.id === session.user?.id;
  const close = (): void => setOpen(undefined);
  const onChanged = (changed: User): void => {
    if (user) answer.set({ ...user, ...changed });
  };

  return (
    <>
      <PageHeader
        title={user?.displayName ?? username}
        windowTitle={`User ${user?.displayName ?? username}`}
        back={{ href: hrefTo('users'), title: 'Users' }}
        lead={isSelf && 'This is you: only somebody else can delete you.'}
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
      {user && <Person key="person" {...{ api, user, isSelf, onChanged }} />}
      {user && <Permissions key="flags" {...{ api, user, session, onChanged }} />}
      {user && <UsersKeys key="keys" user={user} />}
      {user && open === 'invite' && <InviteAgain key="invite" api={api} user={user} onClose={close} />}
      {user && open === 'delete' && (
        <DeleteUser
          key="delete"
          {...{ api, user }}
          onClose={close}
          onDeleted={() => {
            toast(`The user ${user.username} has been deleted.`);
            navigate(hrefTo('users'));
          }}
        />
      )}
    </>
  );
}

interface PersonProps extends Pick<PageProps, 'api'> {
  readonly user: User;
  readonly isSelf: boolean;
  readonly onChanged: (user: User) => void;
}

function Person({ api, user, isSelf, onChanged }: PersonProps) {
  const { username } = user;
  return (
    <EditPanel
      title="Details"
      change="Change"
      action="Save"
      needs={isSelf ? undefined : 'user.update'}
      onSave={async (values) =>
        onChanged(await api.updateUser({ username, ...personIn(values), props: objectIn(values, 'props') }))
      }
      saved="The user is saved."
      fields={
        <>
          <PersonFields user={user} />
          <JsonField name="props" label="Properties" value={user.props} />
        </>
      }
      shown={
        <Facts
          key="show"
          facts={[
            ['User name', <bdi>{username}</bdi>],
            ['First name', <bdi>{user.firstName}</bdi>],
            ['Last name', <bdi>{user.lastName}</bdi>],
            ['E-mail address', <bdi>{user.email}</bdi>],
            ['Last login', user.state === 'invited' ? <Invited /> : <Moment at={user.lastLoginAt} />],
            ['Id', <Copyable text={user.id} what="the id of the user" />],
            ['Properties', <Json value={user.props} />],
            ['Activity', <a href={hrefTo('activityAbout', { kind: 'user', id: user.id })}>Everything about them</a>],
          ]}
        />
      }
    />
  );
}

interface PermissionsProps {
  readonly api: Client;
  readonly user: User;
  readonly session: Session;
  readonly onChanged: (user: User) => void;
}

function Permissions({ api, user, session, onChanged }: PermissionsProps) {
  const names = useNamesByResource();
  const [draft, setDraft] = useState(emptyDraft);
  return (
    <EditPanel
      title="Permissions"
      change="Change permissions"
      action="Save permissions"
      needs="user.update"
      onBegin={() => setDraft(draftOf(user.flags))}
      onSave={async () => {
        const [problem] = draftProblems(draft);
        if (problem !== undefined) throw new FieldProblems({ flags: problem });
        onChanged(await api.updateUser({ username: user.username, flags: flagsOf(draft) }));
      }}
      saved="The permissions are saved."
      fields={<FlagEditor draft={draft} onChange={setDraft} mine={session.flags} names={names} />}
      shown={<FlagList key="show" flags={user.flags} none="None: this user can log in and change their own details." />}
    />
  );
}

interface InviteAgainProps {
  readonly api: Client;
  readonly user: User;
  readonly onClose: () => void;
}

/** Renews the invitation of a user who has not accepted it: the old link ends, and there is a new one. */
function InviteAgain({ api, user, onClose }: InviteAgainProps) {
  const [link, setLink] = useState<string | undefined>(undefined);
  const [hasCome, setCome] = useState(false);
  const invite = async (): Promise<void> => {
    const { username, email, firstName, lastName } = user;
    try {
      setLink((await api.inviteUser({ username, email, firstName, lastName })).loginUrl);
    } catch (error) {
      // The name is taken: by this user, who has accepted the invitation in the meantime.
      if (!(error instanceof KmsError) || error.fields?.username === undefined) throw error;
      setCome(true);
    }
  };
  const close = (
    <button type="button" data-kind="quiet" onClick={onClose}>
      {link === undefined && !hasCome ? 'Cancel' : 'Close'}
    </button>
  );
  if (hasCome) {
    return (
      <Dialog key="come" title="This user has a password already" onClose={onClose}>
        <p>
          There is nothing to invite them to. If they forgot the password, they can ask for a link on the login page, or
          an operator can make one with <code>kms user reset-link {user.username}</code>.
        </p>
        {close}
      </Dialog>
    );
  }
  if (link !== undefined) {
    return (
      <Dialog key="link" title="The new link" onClose={onClose}>
        <p>
          Give it to <bdi>{user.username}</bdi> and to nobody else. It works once, and is shown only once. Earlier links
          no longer work.
        </p>
        <Secret label="Link of the invitation" value={link} />
        {close}
      </Dialog>
    );
  }
  return (
    <Dialog key="ask" title={`Invite ${user.displayName} again?`} onClose={onClose}>
      <p>This makes a new link for them to choose a password. Earlier links stop working.</p>
      <Form action="Invite again" busy="Inviting…" onSubmit={invite} beside={close}>
        {null}
      </Form>
    </Dialog>
  );
}
