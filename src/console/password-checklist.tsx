// The rules for passwords as a list that says of each whether it is met.
import type { PasswordCheck, PasswordRule } from '../client/password-rules.ts';

/** Not to be broken apart at the end of a line. */
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

/** One sentence for those who hear it. */
export function checkSummary({ isValid, isTooLong, rules }: PasswordCheck): string {
  if (isValid) return 'The password meets all rules.';
  if (isTooLong) return 'The password is too long.';
  const missing = rules.filter(({ met }) => !met).map(({ name, least }) => texts[name](least));
  return `Still missing: ${missing.join(', ')}.`;
}
