// LoginPage logs in: with a password, or with an API key for operators who have no user yet. What is typed stays in the
// fields.
import { useEffect } from 'hono/jsx/dom';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { MessagePage } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { appliance, type Credential, withTimeout } from '../session.ts';

interface LoginProps {
  /** Why somebody is here who was logged in. */
  readonly why: string | undefined;
  readonly onLogin: (credential: Credential) => void;
}

export function LoginPage({ why, onLogin }: LoginProps) {
  const [withKey, setWithKey] = useState(false);
  useEffect(() => {
    document.title = 'Log in – Key management service';
    if (why !== undefined) document.querySelector<HTMLElement>('[name=username], [name=apikey]')?.focus();
  }, [withKey]);
  return (
    <MessagePage title="Log in" isFirst>
      {why !== undefined && <p data-note>{why}</p>}
      {withKey ? (
        <Form
          key="key"
          action="Use this key"
          busy="Checking the key…"
          onSubmit={async (values) => onLogin(await byKey(values))}
        >
          <p>
            For operators before there is a user. The key stays in the memory of this page and is forgotten with it.
          </p>
          <Field name="apikey" label="API key" type="password" isRequired />
        </Form>
      ) : (
        <Form
          key="password"
          action="Log in"
          busy="Logging in…"
          onSubmit={async (values) => onLogin(await byPassword(values))}
        >
          <Field name="username" label="User name or e-mail address" autocomplete="username" isRequired />
          <Field name="password" label="Password" type="password" autocomplete="current-password" isRequired />
        </Form>
      )}
      <p data-links>
        {!withKey && <a href={hrefTo('forgot')}>Forgot your password?</a>}
        <button type="button" data-kind="link" onClick={() => setWithKey(!withKey)}>
          {withKey ? 'Use a password instead' : 'Use an API key instead'}
        </button>
      </p>
      <p>
        <small>Invited? Open the link that you were given: it leads to the page where you choose your password.</small>
      </p>
    </MessagePage>
  );
}

async function byPassword(values: FormValues): Promise<Credential> {
  const input = { username: values.text('username'), password: values.exactly('password') };
  const { user, accessToken } = await appliance().login(input, withTimeout());
  return { token: accessToken, user };
}

/** An API key cannot be refreshed, which the appliance says of those only that it knows. */
async function byKey(values: FormValues): Promise<Credential> {
  const token = values.text('apikey');
  try {
    const { user, accessToken } = await appliance(token).refreshSession({}, withTimeout());
    return { token: accessToken, user };
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    if (error.code === 'invalid') return { token, user: undefined };
    if (error.code !== 'unauthenticated') throw error;
    throw new FieldProblems({ apikey: 'The service does not know this key, or it is disabled.' });
  }
}
