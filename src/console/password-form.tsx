// The form by which somebody chooses a password: it tells the rules while they type and lets them see what they typed. The password is in
// the field alone, never in the state of the page.
import { useEffect, useRef } from 'hono/jsx/dom';
import { passwordRules } from '../client/password-rules.ts';
import { announce } from './announce.ts';
import { useState } from './parts/state.ts';
import { checkSummary, PasswordChecklist } from './password-checklist.tsx';

export interface PasswordFormProps {
  /** Whose password it is, where that is known: shown, and for password managers. */
  readonly username?: string;
  readonly action: string;
  /** Resolves when another state of the page takes over, or with what to tell and let try again. */
  readonly onSubmit: (password: string) => Promise<string | undefined>;
}

/** Long enough that nobody is talked to while they type. */
const announceAfter = 900;

export function PasswordForm({ username, action, onSubmit }: PasswordFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const [check, setCheck] = useState(passwordRules(''));
  const [problem, setProblem] = useState('');
  const [isShown, setShown] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const summary = checkSummary(check);
  const isEmpty = check.rules.every(({ has }) => has === 0);

  useEffect(() => {
    if (isEmpty) return;
    const timer = setTimeout(() => announce(summary), announceAfter);
    return () => clearTimeout(timer);
  }, [summary, isEmpty]);

  const typed = (): void => {
    setCheck(passwordRules(field.current?.value ?? ''));
    setProblem('');
  };

  const refuse = (text: string): void => {
    setProblem(text);
    field.current?.focus();
  };

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    const password = field.current?.value ?? '';
    const now = passwordRules(password);
    if (!now.isValid) return refuse(password === '' ? 'Type a password first.' : checkSummary(now));
    setBusy(true);
    setProblem('');
    announce('Saving the password.');
    const trouble = await onSubmit(password);
    if (trouble === undefined) return;
    setBusy(false);
    refuse(trouble);
  };

  return (
    <form method="post" noValidate onSubmit={submit} aria-busy={isBusy ? 'true' : undefined}>
      {username !== undefined && (
        <>
          <label for="username">User name</label>
          <input id="username" name="username" autocomplete="username" readOnly value={username} />
        </>
      )}
      <label for="password">New password</label>
      <div data-joined>
        <input
          id="password"
          ref={field}
          type={isShown ? 'text' : 'password'}
          autocomplete="new-password"
          autocapitalize="none"
          autocorrect="off"
          spellcheck={false}
          required
          aria-describedby="rules"
          aria-errormessage="problem"
          aria-invalid={problem === '' ? undefined : 'true'}
          onInput={typed}
        />
        <button
          type="button"
          onClick={() => setShown(!isShown)}
          aria-label={isShown ? 'Hide password' : 'Show password'}
        >
          {isShown ? 'Hide' : 'Show'}
        </button>
      </div>
      <p id="problem" role="alert">
        {problem}
      </p>
      <PasswordChecklist id="rules" check={check} />
      <button type="submit" aria-disabled={isBusy ? 'true' : undefined}>
        {isBusy ? 'Saving…' : action}
      </button>
    </form>
  );
}
