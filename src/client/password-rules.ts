// The password rules, one by one, for a person typing a password: checked by the same function as in the appliance.
import { isHashable, judgePassword } from '../crypto/password-rules.ts';

export interface PasswordRule {
  readonly name: 'length' | 'uppercase' | 'lowercase' | 'number' | 'special';
  /** Minimum of characters of this kind. */
  readonly least: number;
  /** Actual number of them. */
  readonly has: number;
  readonly met: boolean;
}

export interface PasswordCheck {
  readonly isValid: boolean;
  readonly rules: readonly PasswordRule[];
  /** Longer than the appliance accepts: 1,024 bytes of UTF-8. */
  readonly isTooLong: boolean;
}

export function passwordRules(password: string): PasswordCheck {
  const { isValid, details } = judgePassword(password);
  const rule = (name: PasswordRule['name'], least: number, has: number): PasswordRule => ({
    name,
    least,
    has,
    met: has >= least,
  });
  return {
    isValid,
    isTooLong: !isHashable(password),
    rules: [
      rule('length', details.minLength, details.newPasswordLength),
      rule('uppercase', details.minUppercase, details.newPasswordUppercase),
      rule('lowercase', details.minLowercase, details.newPasswordLowercase),
      rule('number', details.minNumber, details.newPasswordNumber),
      rule('special', details.minSpecialChar, details.newPasswordSpecialChar),
    ],
  };
}
