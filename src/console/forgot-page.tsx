// Asking for a reset link. The answer is the same for every address.
import { useRef } from 'hono/jsx/dom';
import { announce } from './announce.ts';
import { appliance, patience } from './appliance.ts';
import { Notice } from './notice.tsx';
import { useState } from './parts/state.ts';
import { troubleText } from './trouble.ts';

export function ForgotPage() {
  const field = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [sentTo, setSentTo] = useState('');

  const refuse = (text: string): void => {
    setBusy(false);
    setProblem(text);
    field.current?.focus();
  };

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    const email = field.current?.value.trim() ?? '';
    if (!/^[^@\s]+@[^@\s]+$/.test(email)) {
      return refuse(
        email === '' ? 'Type your e-mail address first.' : 'Type a whole e-mail address, such as name@example.org.',
      );
    }
    setBusy(true);
    setProblem('');
    announce('Asking for a link.');
    try {
      await appliance().startPasswordReset({ email }, patience());
      setSentTo(email);
    } catch (error) {
      refuse(troubleText(error));
    }
  };

  if (sentTo !== '') {
    return (
      <Notice key="sent" title="Look into your mail" tone="good">
        <p>
          If somebody here has the address <bdi>{sentTo}</bdi>, a link to choose a new password is on its way to it. It
          works for a short time only.
        </p>
        <WithoutMail />
      </Notice>
    );
  }
  return (
    <Notice key="form" title="Forgot your password?" isFirst>
      <p>You get a link by mail with which you choose a new one.</p>
      <form method="post" noValidate onSubmit={submit} aria-busy={isBusy ? 'true' : undefined}>
        <label for="email">Your e-mail address</label>
        <input
          id="email"
          ref={field}
          type="email"
          autocomplete="email"
          required
          aria-errormessage="problem"
          aria-invalid={problem === '' ? undefined : 'true'}
          onInput={() => setProblem('')}
        />
        <p id="problem" role="alert">
          {problem}
        </p>
        <button type="submit" aria-disabled={isBusy ? 'true' : undefined}>
          {isBusy ? 'Asking…' : 'Send me a link'}
        </button>
      </form>
      <WithoutMail />
    </Notice>
  );
}

function WithoutMail() {
  return (
    <p>
      <small>
        No mail? Not every service of this kind is set up to send any. Your administrator can make a link for you, with{' '}
        <code>kms user reset-link</code>.
      </small>
    </p>
  );
}
