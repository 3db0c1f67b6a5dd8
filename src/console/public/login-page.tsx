// LoginPage logs in with a password and, if there is one, a second factor; with a passkey alone; or with an API key,
// for operators without a user. Input stays in the fields.
import { useEffect } from 'hono/jsx/dom';
import type { AnswerTo } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { ActionError } from '../parts/messages.tsx';
import { MessagePage, titleOf } from '../parts/page.tsx';
import { useAction, useState } from '../parts/state.ts';
import { canUsePasskeys, usePasskey } from '../passkeys.ts';
import { appliance, type Credential, signIn, withTimeout } from '../session.ts';
import { OidcButton } from './oidc-button.tsx';

interface LoginProps {
  /** Why the user is here after having been logged in. */
  readonly why: string | undefined;
  /** There is no user yet, and so no password. */
  readonly isNew: boolean;
  readonly onLogin: (credential: Credential) => void;
}

export function LoginPage({ why, isNew, onLogin }: LoginProps) {
  const [withKey, setWithKey] = useState(isNew);
  const [second, setSecond] = useState<Wanted | undefined>(undefined);
  const [hasCode, setHasCode] = useState(false);
  const byPasskey = second?.passkeyOptions !== undefined && canUsePasskeys && !hasCode;
  useEffect(() => {
    document.title = titleOf('Log in');
    document.querySelector<HTMLElement>('[name=username], [name=apikey]')?.focus();
  }, [withKey]);
  useEffect(() => {
    if (second) document.querySelector<HTMLElement>('[name=code]')?.focus();
  }, [second]);
  const alone = useAction(async () => {
    const credential = await usePasskey(await appliance().passkeyLoginOptions({}, withTimeout()));
    onLogin(await signIn((api) => api.loginWithPasskey({ credential }, withTimeout())));
  });
  const submit = async (values: FormValues): Promise<void> => {
    try {
      onLogin(await byPassword(values, second));
    } catch (error) {
      const wanted = wantedIn(error);
      if (!wanted) throw error;
      setSecond(wanted);
      if (second) throw new FieldProblems({ code: 'This is wrong, or has been used already.' });
    }
  };
  return (
    <MessagePage title="Log in" isFirst>
      {why !== undefined && <p data-note>{why}</p>}
      {isNew && (
        <div data-note>
          <p>
            There are no users yet. The link for creating the first one was shown when the service was first started;{' '}
            <code>kms user set-up-link</code>, on the machine of the service, makes another.
          </p>
          <p>The root API key, which was shown with the link, lets you in as well.</p>
        </div>
      )}
      {withKey ? (
        <Form
          key="key"
          action="Use this key"
          busy="Checking the key…"
          onSubmit={async (values) => onLogin(await byKey(values))}
        >
          <p>
            For operators, until the first user exists. The key stays in the memory of this page until you close it.
          </p>
          <Field name="apikey" label="API key" type="password" isRequired />
        </Form>
      ) : (
        <Form key="password" action={byPasskey ? 'Use your passkey' : 'Log in'} busy="Logging in…" onSubmit={submit}>
          <Field
            name="username"
            label="User name or e-mail address"
            autocomplete="username"
            isRequired
            onInput={() => setSecond(undefined)}
          />
          <Field name="password" label="Password" type="password" autocomplete="current-password" isRequired />
          {second && <SecondStep key="second" wanted={second} onInput={(code) => setHasCode(code.trim() !== '')} />}
        </Form>
      )}
      <ActionError error={alone.error} />
      <OidcButton />
      <p data-links>
        {!withKey && canUsePasskeys && (
          <button type="button" data-kind="link" onClick={() => void alone.start()}>
            Use a passkey alone
          </button>
        )}
        {!withKey && <a href={hrefTo('forgot')}>Forgot your password?</a>}
        <button type="button" data-kind="link" onClick={() => setWithKey(!withKey)}>
          {withKey ? 'Use a password instead' : 'Use an API key instead'}
        </button>
      </p>
      {!isNew && (
        <p>
          <small>
            Invited? Open the link that you were given: it leads to the page where you choose your password.
          </small>
        </p>
      )}
    </MessagePage>
  );
}

/** Second factors that the appliance asks for after a correct password. */
interface Wanted {
  readonly secondFactor: readonly string[];
  readonly passkeyOptions?: AnswerTo<'passkeyLoginOptions'>;
}

interface SecondStepProps {
  readonly wanted: Wanted;
  readonly onInput: (code: string) => void;
}

function SecondStep({ wanted: { secondFactor, passkeyOptions }, onInput }: SecondStepProps) {
  const hasPasskey = passkeyOptions !== undefined && canUsePasskeys;
  const ways = [
    secondFactor.includes('totp') && 'Six digits from your app.',
    secondFactor.includes('recovery-code') && 'A recovery code works too.',
    hasPasskey && 'Leave it empty to use your passkey.',
  ];
  return (
    <Field
      name="code"
      label="Code of your second factor"
      autocomplete="one-time-code"
      hint={ways.filter((way) => way !== false).join(' ')}
      isRequired={!hasPasskey}
      onInput={onInput}
    />
  );
}

/** Throws the appliance's error; `wantedIn` finds out whether it asks for a second factor. */
async function byPassword(values: FormValues, wanted: Wanted | undefined): Promise<Credential> {
  const code = values.text('code');
  const { passkeyOptions } = wanted ?? {};
  const input = {
    username: values.text('username'),
    password: values.exactly('password'),
    ...(code !== '' && { code }),
    ...(code === '' && passkeyOptions && { passkey: await usePasskey(passkeyOptions) }),
  };
  return signIn((api) => api.login(input, withTimeout()));
}

function wantedIn(error: unknown): Wanted | undefined {
  const body = error instanceof KmsError ? error.body : undefined;
  // Cast: the appliance's response is declared.
  return body && 'secondFactor' in body ? (body as Wanted) : undefined;
}

/** Checks the key by asking for its permission flags. */
async function byKey(values: FormValues): Promise<Credential> {
  const bearer = values.text('apikey');
  try {
    const { flags = {} } = await appliance({ bearer }).getOverview({ range: 'hour', flags: 'true' }, withTimeout());
    return { bearer, user: undefined, flags };
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    // Invalid: a text that cannot be a key at all.
    if (error.code !== 'unauthenticated' && error.code !== 'invalid') throw error;
    throw new FieldProblems({ apikey: 'The service does not know this key, or it is disabled.' });
  }
}
