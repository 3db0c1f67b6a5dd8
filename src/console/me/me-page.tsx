// MePage shows the user's own account: name, password, second factors, and open sessions.
import type { User } from '../../api/users.ts';
import type { AnswerTo } from '../../client/client.ts';
import { passwordRules } from '../../client/password-rules.ts';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Field } from '../parts/fields.tsx';
import { EditPanel } from '../parts/form.tsx';
import { ActionError, Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { type Answer, useAction, useAnswer, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Facts, Minute, minuteText } from '../parts/values.tsx';
import { checkSummary, PasswordChecklist } from '../public/password.tsx';
import { SecondFactorsPanel } from './second-factors.tsx';

export function MePage({ api, session: { user } }: PageProps) {
  if (user) return <Account key="user" {...{ api, user }} />;
  return (
    <div key="key">
      <PageHeader title="Your account" />
      <p>
        You logged in with an API key, which has neither a password nor sessions. Create a user for yourself to have
        both.
      </p>
    </div>
  );
}

function Account({ api, user }: Pick<PageProps, 'api'> & { readonly user: User }) {
  // One request for the whole page, which is one activity record.
  const answer = useAnswer(async (signal) => {
    const { sessions, secondFactors } = await api.listSessions({ secondFactors: 'true' }, { signal });
    if (!secondFactors) throw new KmsError('internal', 'the answer has no second factors');
    return { sessions, factors: secondFactors };
  });
  const { reload } = answer;
  return (
    <>
      <PageHeader
        title="Your account"
        lead="Your password, second factors and sessions. You need no permission to change them."
      />
      <section data-panel>
        <div data-bar>
          <h2>You</h2>
          <a href={hrefTo('user', { username: user.username })} data-button data-kind="quiet">
            Change your details
          </a>
        </div>
        <Facts
          facts={[
            ['Name', <bdi key="name">{user.displayName}</bdi>],
            ['User name', <bdi key="username">{user.username}</bdi>],
            ['E-mail', <bdi key="email">{user.email}</bdi>],
          ]}
        />
      </section>
      <Password api={api} username={user.username} onChanged={reload} />
      <SecondFactorsPanel api={api} answer={partOf(answer, ({ factors }) => factors)} />
      <Sessions api={api} answer={partOf(answer, ({ sessions }) => sessions)} />
    </>
  );
}

/** A part of an answer; only the whole is fetched again, and none is set. */
function partOf<T, P>(answer: Answer<T>, part: (whole: T) => P): Answer<P> {
  const { reload } = answer;
  if (answer.is !== 'ready') return { ...answer, set: () => {} };
  return { is: 'ready', value: part(answer.value), reload, set: () => {} };
}

interface PasswordProps extends Pick<PageProps, 'api'> {
  readonly username: string;
  readonly onChanged: () => void;
}

function Password({ api, username, onChanged }: PasswordProps) {
  const [check, setCheck] = useState(passwordRules(''));
  return (
    <EditPanel
      title="Password"
      change="Change password"
      action="Save password"
      needs={undefined}
      onBegin={() => setCheck(passwordRules(''))}
      onSave={async (values) => {
        const newPassword = values.exactly('newPassword');
        const now = passwordRules(newPassword);
        if (!now.isValid) throw new FieldProblems({ newPassword: checkSummary(now) });
        await changePassword(api, values.exactly('currentPassword'), newPassword);
        onChanged();
      }}
      saved="The password is changed. Your other sessions have ended."
      fields={
        <>
          <input name="username" autocomplete="username" readOnly hidden value={username} />
          <Field
            name="currentPassword"
            label="Current password"
            type="password"
            autocomplete="current-password"
            isRequired
          />
          <Field
            name="newPassword"
            label="New password"
            type="password"
            autocomplete="new-password"
            isRequired
            onInput={(typed) => setCheck(passwordRules(typed))}
          />
          <PasswordChecklist id="rules" check={check} />
        </>
      }
      shown={<p>When you change it, all your other sessions end.</p>}
    />
  );
}

async function changePassword(api: PageProps['api'], currentPassword: string, newPassword: string): Promise<void> {
  try {
    await api.changePassword({ currentPassword, newPassword });
  } catch (error) {
    // The page has already checked everything else that the appliance could reject.
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    throw new FieldProblems({ currentPassword: 'This is not your password.' });
  }
}

type OwnSession = AnswerTo<'listSessions'>['sessions'][number];

interface SessionsProps extends Pick<PageProps, 'api'> {
  readonly answer: Answer<OwnSession[]>;
}

function Sessions({ api, answer }: SessionsProps) {
  const end = useAction(async (id: string | undefined) => {
    if (id === undefined) await api.endOtherSessions();
    else await api.endSession({ id });
    toast(id === undefined ? 'All other sessions have ended.' : 'The session has ended.');
    answer.reload();
  });
  const columns: readonly Column<OwnSession>[] = [
    { title: 'Logged in', kind: 'name', cell: ({ createdAt }) => <Minute at={createdAt} /> },
    { title: 'Last used', cell: ({ lastUsedAt }) => <Minute at={lastUsedAt} /> },
    { title: 'From', cell: ({ address }) => (address === null ? 'not recorded' : <code>{address}</code>) },
    {
      title: 'End it',
      cell: ({ id, current, createdAt }) =>
        current ? (
          <span data-quiet>You are here: log out.</span>
        ) : (
          <Button
            kind="quiet"
            isBusy={end.isBusy}
            label={`End the session of ${minuteText(createdAt)}`}
            onClick={() => void end.start(id)}
          >
            End
          </Button>
        ),
    },
  ];
  const others = answer.is === 'ready' && answer.value.some(({ current }) => !current);
  return (
    <section data-panel>
      <div data-bar>
        <h2>Sessions</h2>
        {others && (
          <Button kind="quiet" isBusy={end.isBusy} onClick={() => void end.start(undefined)}>
            End all others
          </Button>
        )}
      </div>
      <p>
        Where you are logged in, with times to the minute. If you do not recognise a session, end it and change your
        password.
      </p>
      <ActionError error={end.error} />
      <Loaded
        of={answer}
        show={(sessions) => <Rows caption="Your sessions" columns={columns} items={sessions} keyOf={({ id }) => id} />}
      />
    </section>
  );
}
