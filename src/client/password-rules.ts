// The rules for passwords, one by one, for whoever types one: judged by the very function by which the appliance
// judges.
import { isHashable, judgePassword } from '../crypto/password-rules.ts';

export interface PasswordRule {
  readonly name: 'length' | 'uppercase' | 'lowercase' | 'number' | 'special';
  /** How many characters of the kind there must be at least. */
  readonly least: number;
  /** How many there are. */
  readonly has: number;
  readonly met: boolean;
}

export interface PasswordCheck {
  readonly isValid: boolean;
  readonly rules: readonly PasswordRule[];
  /** Over what the appliance takes: 1,024 bytes of UTF-8. */
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
