// UsersKeys lists a user's API keys, which come with the user. Before the user is deleted, a dialog shows which
// keys end with them and offers to hand those to another user.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { User } from '../../api/users.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { stateOf } from '../apikeys/key-change.ts';
import { KeyName, StateTag } from '../apikeys/key-fields.tsx';
import { useUsers } from '../known-names.ts';
import { useLack } from '../parts/button.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Select } from '../parts/fields.tsx';
import { Loading } from '../parts/messages.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Minute, Moment } from '../parts/values.tsx';
import { countText } from '../text.ts';

interface UserProps {
  readonly api: Client;
  readonly user: User;
}

/** Users who are looked through; among more there is no telling who is the last of a kind. */
const mostCompared = 10_000;

export function mayDoEverything({ flags }: Pick<User, 'flags'>): boolean {
  return flags['*'] === true;
}

/** A user with their API keys, for those who may see these. */
type FoundUser = AnswerTo<'getUser'>;

const columns: readonly Column<SafeApiKey>[] = [
  { title: 'API key', kind: 'name', cell: (apiKey) => <KeyName apiKey={apiKey} /> },
  { title: 'State', cell: (apiKey) => <StateTag apiKey={apiKey} /> },
  { title: 'Expires', cell: ({ expiresAt }) => <Moment at={expiresAt} /> },
  { title: 'Last used', cell: ({ lastUsedAt }) => <Minute at={lastUsedAt} /> },
];

export function UsersKeys({ user }: { readonly user: FoundUser }) {
  const { keys, apikeys } = user;
  const lacks = useLack('apikey.read');
  return (
    <section data-panel>
      <h2>API keys of this user</h2>
      {keys.length === 0 && (
        <p data-quiet>
          None. An API key belongs to the user who creates it while logged in, or to the user it is handed to.
        </p>
      )}
      {keys.length > 0 &&
        (apikeys ? <Table key="keys" user={user} apikeys={apikeys.data} /> : <p data-quiet>{lacks}</p>)}
    </section>
  );
}

function Table({ user, apikeys }: { readonly user: FoundUser; readonly apikeys: readonly SafeApiKey[] }) {
  const more = user.keys.length - apikeys.length;
  return (
    <>
      <Rows caption="API keys of this user" columns={columns} items={apikeys} keyOf={({ keyid }) => keyid} />
      {more > 0 && <p data-quiet>And {countText(more)} more.</p>}
    </>
  );
}

interface DeleteUserProps extends UserProps {
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteUser({ api, user, onClose, onDeleted }: DeleteUserProps) {
  const [heir, setHeir] = useState('');
  return (
    <ConfirmByName
      title={`Delete ${user.displayName}?`}
      name={user.username}
      action="Delete the user"
      busy="Deleting…"
      onClose={onClose}
      onConfirm={async () => {
        if (heir !== '') await handKeys(api, user, heir);
        await api.deleteUser({ username: user.username });
        onDeleted();
      }}
    >
      <p>All sessions of this user end. This cannot be undone.</p>
      <OnlyUser api={api} user={user} />
      {user.keys.length > 0 && <KeysThatEnd api={api} user={user} heir={heir} onHeir={setHeir} />}
    </ConfirmByName>
  );
}

/** A warning before the last user goes, or the last who may do everything. */
function OnlyUser({ api, user }: UserProps) {
  const answer = useAnswer((signal) => api.listUsers({ limit: mostCompared }, { signal }));
  if (answer.is !== 'ready' || answer.value.pagination.hasMore) return null;
  const others = answer.value.data.filter(({ id }) => id !== user.id);
  if (others.length > 0 && !mayDoEverything(user)) return null;
  if (others.some((other) => other.state === 'active' && mayDoEverything(other))) return null;
  return (
    <p data-note data-tone="warn">
      {others.length === 0 ? (
        <span key="only">
          <bdi>{user.username}</bdi> is the only user: a new first one needs the link of{' '}
          <code>kms user set-up-link</code>.
        </span>
      ) : (
        <span key="mightiest">
          <bdi>{user.username}</bdi> is the only user who may do everything.
        </span>
      )}
    </p>
  );
}

/** Hands over the active keys; disabled ones stay as they are. */
async function handKeys(api: Client, user: User, owner: string): Promise<void> {
  for (const apikeyid of user.keys) {
    const { active } = await api.getApiKey({ apikeyid });
    if (active) await api.updateApiKey({ op: 'merge', apikeyid, owner });
  }
}

interface KeysThatEndProps extends UserProps {
  /** Id of the user who gets them; empty for none. */
  readonly heir: string;
  readonly onHeir: (heir: string) => void;
}

function KeysThatEnd({ api, user, heir, onHeir }: KeysThatEndProps) {
  const answer = useAnswer(async (signal) => {
    const { keys, apikeys } = await api.getUser({ username: user.username, apikeys: true }, { signal });
    if (!apikeys) throw new KmsError('forbidden', 'the permission flag apikey.read is missing');
    return { keys: apikeys.data, more: keys.length - apikeys.data.length };
  });
  const users = useUsers();
  if (answer.is === 'loading') return <Loading key="loading" />;
  if (answer.is === 'failed') {
    return (
      <p key="failed" data-note data-tone="warn">
        {user.keys.length === 1 ? 'One API key belongs' : `${user.keys.length} API keys belong`} to this user, and will
        be disabled. You are not allowed to see more about them.
      </p>
    );
  }
  const { keys, more } = answer.value;
  const ending = keys.filter((key) => stateOf(key, Date.now()) !== 'disabled');
  if (ending.length === 0 && more <= 0) return <p key="none">None of the user’s API keys is active.</p>;
  const others = [...users.values()].filter(({ id }) => id !== user.id);
  return (
    <div key="keys">
      <p>{heir === '' ? 'These API keys are disabled with the user:' : 'These API keys are handed on:'}</p>
      <ul>
        {ending.map((apiKey) => (
          <li key={apiKey.keyid}>
            <KeyName apiKey={apiKey} />, last used: <Minute at={apiKey.lastUsedAt} />
          </li>
        ))}
        {more > 0 && <li key="more">and up to {countText(more)} more</li>}
      </ul>
      <Select
        name="heir"
        label="Hand them to"
        value={heir}
        onChange={onHeir}
        options={[
          ['', 'nobody: they are disabled'],
          ...others.map(({ id, username, displayName }) => [id, `${displayName} (${username})`] as const),
        ]}
      />
    </div>
  );
}
