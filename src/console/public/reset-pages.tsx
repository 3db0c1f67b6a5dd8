// ForgotPage requests a reset link, with the same response for every address; ResetPage uses the link to set a new
// password. Whether the link is valid shows only when a password is sent with it.
import { useRef } from 'hono/jsx/dom';
import { KmsError } from '../../errors.ts';
import { noMailMessage } from '../../model/names.ts';
import { errorText, FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { announce } from '../parts/messages.tsx';
import { MessagePage } from '../parts/page.tsx';
import { useAction, useState } from '../parts/state.ts';
import { appliance, withTimeout } from '../session.ts';
import { PasswordForm } from './password.tsx';

type State = 'open' | 'missing' | 'refused' | 'done';

export function ResetPage({ token }: { readonly token: string | undefined }) {
  const [state, setState] = useState<State>(token === undefined ? 'missing' : 'open');

  const complete = async (password: string): Promise<void> => {
    try {
      await appliance().completePasswordReset({ token: token ?? '', password }, withTimeout());
      setState('done');
    } catch (error) {
      // The password met the rules before it was sent, so the link must be invalid.
      if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
      setState('refused');
    }
  };

  switch (state) {
    case 'open':
      return (
        <MessagePage key="open" title="Choose a new password" isFirst>
          <p>It replaces the old one, and everyone who is logged in as you is logged out.</p>
          <PasswordForm action="Change password" onSubmit={complete} />
        </MessagePage>
      );
    case 'missing':
      return (
        <MessagePage key="missing" title="Open the link that you were given">
          <p>
            This page needs the whole link. Reloading the page is not enough: open the link itself again, or{' '}
            <a href={hrefTo('forgot')}>ask for another one</a>.
          </p>
        </MessagePage>
      );
    case 'refused':
      return (
        <MessagePage key="refused" title="This link no longer works" tone="bad">
          <p>
            A link works once, for a short time, and only until a newer one replaces it. Your password has not changed.
          </p>
          <p>
            <a href={hrefTo('forgot')}>Ask for a new link</a>
          </p>
        </MessagePage>
      );
    case 'done':
      return (
        <MessagePage key="done" title="Your password has been changed" tone="good">
          <p>From now on, log in with it. All your sessions have ended, so nobody stays logged in with the old one.</p>
          <p>
            <a href={hrefTo('home')}>Log in</a>
          </p>
        </MessagePage>
      );
  }
}

export function ForgotPage() {
  const field = useRef<HTMLInputElement>(null);
  const [asked, setAsked] = useState<{ readonly email: string; readonly message: string } | undefined>(undefined);

  const { isBusy, error, start, clear } = useAction(
    async () => {
      const email = field.current?.value.trim() ?? '';
      if (email === '') throw new FieldProblems({ email: 'Type your e-mail address first.' });
      if (!/^[^@\s]+@[^@\s]+$/.test(email)) {
        throw new FieldProblems({ email: 'Type a complete e-mail address, such as name@example.org.' });
      }
      announce('Asking for a link.');
      const { message } = await appliance().startPasswordReset({ email }, withTimeout());
      setAsked({ email, message });
    },
    () => field.current?.focus(),
  );
  const submit = (event: Event): void => {
    event.preventDefault();
    void start();
  };

  if (asked?.message === noMailMessage) {
    return (
      <MessagePage key="unsent" title="Ask your administrator">
        <p>
          This service sends no mail, so do not wait for any. Its operator can make a link for you to choose a new
          password, on the machine of the service: <code>kms user reset-link</code> and your user name.
        </p>
        <p>
          <a href={hrefTo('home')}>Back to the login</a>
        </p>
      </MessagePage>
    );
  }
  if (asked) {
    return (
      <MessagePage key="sent" title="Check your mail" tone="good">
        <p>
          If somebody here has the address <bdi>{asked.email}</bdi>, a link to choose a new password is on its way to
          it. It works only for a short time.
        </p>
        <p>
          <small>
            No mail? Your administrator can make a link for you, with <code>kms user reset-link</code>.
          </small>
        </p>
      </MessagePage>
    );
  }
  return (
    <MessagePage key="form" title="Forgot your password?" isFirst>
      <p>You get a link by mail to choose a new one, or find out here who can make you a link.</p>
      <form method="post" noValidate onSubmit={submit} aria-busy={isBusy ? 'true' : undefined}>
        <label for="email">Your e-mail address</label>
        <input
          id="email"
          ref={field}
          type="email"
          autocomplete="email"
          required
          aria-errormessage="problem"
          aria-invalid={error === undefined ? undefined : 'true'}
          onInput={clear}
        />
        <p id="problem" role="alert">
          {error === undefined ? '' : errorText(error)}
        </p>
        <button type="submit" aria-disabled={isBusy ? 'true' : undefined}>
          {isBusy ? 'Asking…' : 'Send me a link'}
        </button>
      </form>
    </MessagePage>
  );
}
