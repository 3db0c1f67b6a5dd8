// NewUserPage adds a user: by an invitation, with which they choose their own password, or with a generated password.
import type { User } from '../../api/users.ts';
import { FieldProblems } from '../error-text.ts';
import { draftProblems, emptyDraft, flagsOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { useNamesByResource } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { Choice, Field, JsonField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { useState } from '../parts/state.ts';

interface Added {
  readonly username: string;
  readonly how: Way;
  /** The link of the invitation, or the password. */
  readonly secret: string;
}

type Way = 'invite' | 'password';

export function NewUserPage({ api, session }: PageProps) {
  const [way, setWay] = useState<Way>('invite');
  const [draft, setDraft] = useState(emptyDraft);
  const names = useNamesByResource();
  const [added, setAdded] = useState<Added | undefined>(undefined);

  const add = async (values: FormValues): Promise<void> => {
    const [problem] = draftProblems(draft);
    if (problem !== undefined) throw new FieldProblems({ flags: problem });
    const username = values.text('username');
    const fields = {
      username,
      ...personIn(values),
      flags: flagsOf(draft),
      props: objectIn(values, 'props'),
    };
    const secret = way === 'invite' ? (await api.inviteUser(fields)).loginUrl : (await api.createUser(fields)).password;
    setAdded({ username, how: way, secret });
  };

  if (added) return <AddedUser key="added" {...added} onAnother={() => setAdded(undefined)} />;
  return (
    <div key="form">
      <PageHeader title="New user" back={{ href: hrefTo('users'), title: 'Users' }} />
      <Form
        action={way === 'invite' ? 'Invite' : 'Create the user'}
        busy="Please wait…"
        needs={way === 'invite' ? 'user.invite' : 'user.create'}
        onSubmit={add}
      >
        <PersonFields />
        <Field name="username" label="User name" hint="They log in with it; it cannot be changed later." isRequired />
        <Choice
          legend="How they get in"
          name="way"
          chosen={way}
          onChange={setWay}
          options={[
            {
              value: 'invite',
              label: 'By an invitation',
              hint: (
                <>They choose a password through a link, which you get here, and they get by mail if mail is set up.</>
              ),
            },
            { value: 'password', label: 'With a generated password', hint: 'You get it here to pass on.' },
          ]}
        />
        <h2>Permissions</h2>
        <FlagEditor draft={draft} onChange={setDraft} mine={session.flags} names={names} />
        <details>
          <summary>Properties</summary>
          <JsonField name="props" label="Properties" />
        </details>
      </Form>
    </div>
  );
}

function AddedUser({ username, how, secret, onAnother }: Added & { readonly onAnother: () => void }) {
  return (
    <div>
      <PageHeader
        title={how === 'invite' ? 'The user is invited' : 'The user has been created'}
        back={{ href: hrefTo('users'), title: 'Users' }}
      />
      <section data-panel>
        <p>
          {how === 'invite' ? (
            <>
              Give this link to <bdi>{username}</bdi> and to nobody else: the first to open it chooses the password. It
              works once, and is shown only once.
            </>
          ) : (
            <>
              This is the password of <bdi>{username}</bdi>. It is shown only once.
            </>
          )}
        </p>
        <Secret label={how === 'invite' ? 'Link of the invitation' : 'Password'} value={secret} />
      </section>
      <div data-actions>
        <ButtonLink href={hrefTo('user', { username })}>Go to the user</ButtonLink>
        <button type="button" data-kind="quiet" onClick={onAnother}>
          Add another one
        </button>
      </div>
    </div>
  );
}

/** Input for a user's name and address. */
export function PersonFields({ user }: { readonly user?: User }) {
  return (
    <>
      <Field name="firstName" label="First name" isRequired value={user?.firstName ?? ''} />
      <Field name="lastName" label="Last name" isRequired value={user?.lastName ?? ''} />
      <Field name="email" label="E-mail address" type="email" isRequired value={user?.email ?? ''} />
    </>
  );
}

/** The values of `PersonFields`. */
export function personIn(values: FormValues) {
  return { email: values.text('email'), firstName: values.text('firstName'), lastName: values.text('lastName') };
}
