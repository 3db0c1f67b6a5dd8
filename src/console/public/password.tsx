// PasswordForm is where users choose a password: it shows the rules while they type, and can show the password. The
// password is in the field only, never in the page's state.
import { useEffect, useRef } from 'hono/jsx/dom';
import { type PasswordCheck, type PasswordRule, passwordRules } from '../../client/password-rules.ts';
import { errorText, FieldProblems } from '../error-text.ts';
import { announce } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';

interface PasswordFormProps {
  /** The user's name if it is known: shown, and used by password managers. */
  readonly username?: string;
  readonly action: string;
  /** Resolves when another state of the page takes over; throws an error to show before the next attempt. */
  readonly onSubmit: (password: string) => Promise<void>;
}

/** Milliseconds without typing before screen readers announce the rules. */
const announceAfter = 900;

export function PasswordForm({ username, action, onSubmit }: PasswordFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const [check, setCheck] = useState(passwordRules(''));
  const [isShown, setShown] = useState(false);
  const summary = checkSummary(check);
  const isEmpty = check.rules.every(({ has }) => has === 0);

  useEffect(() => {
    if (isEmpty) return;
    const timer = setTimeout(() => announce(summary), announceAfter);
    return () => clearTimeout(timer);
  }, [summary, isEmpty]);

  const typed = (): void => {
    setCheck(passwordRules(field.current?.value ?? ''));
    clear();
  };

  const { isBusy, error, start, clear } = useAction(
    async () => {
      const password = field.current?.value ?? '';
      const now = passwordRules(password);
      if (!now.isValid) {
        throw new FieldProblems({ password: password === '' ? 'Type a password first.' : checkSummary(now) });
      }
      announce('Saving the password.');
      await onSubmit(password);
    },
    () => field.current?.focus(),
  );
  const submit = (event: Event): void => {
    event.preventDefault();
    void start();
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
          aria-invalid={error === undefined ? undefined : 'true'}
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
        {error === undefined ? '' : errorText(error)}
      </p>
      <PasswordChecklist id="rules" check={check} />
      <button type="submit" aria-disabled={isBusy ? 'true' : undefined}>
        {isBusy ? 'Saving…' : action}
      </button>
    </form>
  );
}

/** Non-breaking, so that a line does not end within the examples. */
const examples = ', such as !\u00a0or\u00a0?';

const texts: Readonly<Record<PasswordRule['name'], (least: number) => string>> = {
  length: (least) => `${least} characters`,
  uppercase: (least) => (least === 1 ? 'an upper-case letter' : `${least} upper-case letters`),
  lowercase: (least) => (least === 1 ? 'a lower-case letter' : `${least} lower-case letters`),
  number: (least) => (least === 1 ? 'a digit' : `${least} digits`),
  special: (least) => (least === 1 ? 'a special character' : `${least} special characters`) + examples,
};

export function PasswordChecklist({ id, check }: { readonly id: string; readonly check: PasswordCheck }) {
  return (
    <div id={id}>
      <p>At least:</p>
      <ul>
        {check.rules.map((rule) => (
          <li key={rule.name} data-met={rule.met ? 'yes' : 'no'}>
            {texts[rule.name](rule.least)}
            <span data-spoken>{rule.met ? ' (done)' : ' (missing)'}</span>
          </li>
        ))}
      </ul>
      {check.isTooLong && <p>Passwords longer than 1,024 bytes cannot be used.</p>}
    </div>
  );
}

/** One sentence for screen readers. */
export function checkSummary({ isValid, isTooLong, rules }: PasswordCheck): string {
  if (isValid) return 'The password meets all rules.';
  if (isTooLong) return 'The password is too long.';
  const missing = rules.filter(({ met }) => !met).map(({ name, least }) => texts[name](least));
  return `Still missing: ${missing.join(', ')}.`;
}
