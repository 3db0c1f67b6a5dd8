// SetUpPage creates the first administrator's user, through the link that the appliance showed when it was created, and
// logs them in.
import { passwordRules } from '../../client/password-rules.ts';
import { Console } from '../console.tsx';
import { FieldProblems, stateOf } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { Brand, MessagePage } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { type Credential, signIn, withTimeout } from '../session.ts';
import { PersonFields, personIn } from '../users/new-user-page.tsx';
import { checkSummary, PasswordChecklist } from './password.tsx';

type Refusal = 'missing' | 'expired' | 'invalid' | 'used';

type State =
  | { readonly is: 'open' }
  | { readonly is: 'refused'; readonly why: Refusal }
  | { readonly is: 'in'; readonly credential: Credential };

interface SetUpProps {
  readonly token: string | undefined;
  /** There is no user yet. */
  readonly isNew: boolean;
}

export function SetUpPage({ token, isNew }: SetUpProps) {
  const [state, setState] = useState<State>(() => {
    if (!isNew) return { is: 'refused', why: 'used' };
    return token === undefined ? { is: 'refused', why: 'missing' } : { is: 'open' };
  });
  if (state.is === 'in') return <Console key="in" credential={state.credential} />;

  const complete = async (values: FormValues): Promise<void> => {
    const password = values.exactly('password');
    const check = passwordRules(password);
    if (!check.isValid) throw new FieldProblems({ password: checkSummary(check) });
    try {
      const input = { token: token ?? '', username: values.text('username'), ...personIn(values), password };
      const credential = await signIn((api) => api.completeSetUp(input, withTimeout()));
      window.history.replaceState(null, '', hrefTo('home'));
      setState({ is: 'in', credential });
    } catch (error) {
      const why = stateOf(error);
      if (why !== 'expired' && why !== 'invalid') throw error;
      setState({ is: 'refused', why });
    }
  };

  return (
    <div key="out">
      <header>
        <Brand />
      </header>
      <main>
        {state.is === 'open' ? <Open key="open" onSubmit={complete} /> : <Refused key="refused" why={state.why} />}
      </main>
    </div>
  );
}

function Open({ onSubmit }: { readonly onSubmit: (values: FormValues) => Promise<void> }) {
  const [check, setCheck] = useState(passwordRules(''));
  return (
    <MessagePage title="Set up this service" isFirst>
      <p>You are the first one here: your user may do everything, and you can invite others.</p>
      <Form action="Create my user" busy="Creating your user…" onSubmit={onSubmit}>
        <PersonFields />
        <Field name="username" label="User name" autocomplete="username" hint="You log in with it." isRequired />
        <Field
          name="password"
          label="Password"
          type="password"
          autocomplete="new-password"
          isRequired
          onInput={(typed) => setCheck(passwordRules(typed))}
        />
        <PasswordChecklist id="rules" check={check} />
      </Form>
    </MessagePage>
  );
}

/** The first user may have been made on the command line, without permissions. */
const mayNotInvite = (
  <>
    If no user may invite others, run <code>kms user update NAME --flag '*'</code> on the machine of the service: that
    user may then do everything.
  </>
);

function Refused({ why }: { readonly why: Refusal }) {
  if (why === 'used') {
    return (
      <MessagePage title="This service is set up already" isFirst>
        <p>
          A set-up link works until there is a user, and now there is one: this link has been used or is no longer
          needed.
        </p>
        <ul>
          <li>
            If the user is yours, <a href={hrefTo('home')}>log in</a>.{' '}
            <a href={hrefTo('forgot')}>Forgot the password?</a>
          </li>
          <li>If somebody else was here before you, let them invite you.</li>
          <li>{mayNotInvite}</li>
        </ul>
      </MessagePage>
    );
  }
  if (why === 'missing') {
    return (
      <MessagePage title="Open the link that the service showed">
        <p>
          This page needs the whole link that was shown when the service was first started. Reloading the page is not
          enough: open the link itself again. If it is lost, <code>kms user set-up-link</code> makes another on the
          machine of the service.
        </p>
      </MessagePage>
    );
  }
  if (why === 'expired') {
    return (
      <MessagePage title="The set-up link has expired" tone="bad">
        <p>
          Make a new one with <code>kms user set-up-link</code>, on the machine of the service. Or{' '}
          <a href={hrefTo('home')}>log in with the root API key</a>, which was shown with the link, and invite yourself.
        </p>
      </MessagePage>
    );
  }
  return (
    <MessagePage title="This set-up link does not work" tone="bad">
      <p>It works once, until there is a user, and only if it is complete.</p>
      <ul>
        <li>
          If your user exists already, <a href={hrefTo('home')}>log in</a>.
        </li>
        <li>If somebody else was here before you, let them invite you.</li>
        <li>{mayNotInvite}</li>
        <li>
          Otherwise open the link again exactly as it was shown, or make another with <code>kms user set-up-link</code>{' '}
          on the machine of the service.
        </li>
      </ul>
    </MessagePage>
  );
}
