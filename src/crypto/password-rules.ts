// The password rules, count by count. The same function judges on the server and, through the client, at the input
// field.

/** The wire's words for a verdict on a password. */
interface PasswordVerdict {
  readonly isValid: boolean;
  readonly details: {
    readonly minLength: number;
    readonly newPasswordLength: number;
    readonly minUppercase: number;
    readonly newPasswordUppercase: number;
    readonly minLowercase: number;
    readonly newPasswordLowercase: number;
    readonly minSpecialChar: number;
    readonly newPasswordSpecialChar: number;
    readonly minNumber: number;
    readonly newPasswordNumber: number;
  };
}

const minLength = 8;
const minEach = 1;
const maxBytes = 1024;

/**
 * Whether the password can be hashed at all: well-formed Unicode without U+FFFD, which programs substitute for bytes
 * that they could not decode, and at most 1,024 bytes of UTF-8.
 */
export function isHashable(password: string): boolean {
  if (!password.isWellFormed() || password.includes('\ufffd')) return false;
  return new TextEncoder().encode(password).length <= maxBytes;
}

/** Judges a password by its code points: letters and digits by Unicode category, all others are special. */
export function judgePassword(password: string): PasswordVerdict {
  const counts = { length: 0, upper: 0, lower: 0, special: 0, digit: 0 };
  for (const character of password) {
    counts.length++;
    if (/\p{Lu}/u.test(character)) counts.upper++;
    else if (/\p{Ll}/u.test(character)) counts.lower++;
    else if (/\p{Nd}/u.test(character)) counts.digit++;
    else if (!/\p{L}/u.test(character)) counts.special++;
  }
  const meetsAll =
    counts.length >= minLength &&
    [counts.upper, counts.lower, counts.special, counts.digit].every((count) => count >= minEach);
  return {
    isValid: meetsAll && isHashable(password),
    details: {
      minLength,
      newPasswordLength: counts.length,
      minUppercase: minEach,
      newPasswordUppercase: counts.upper,
      minLowercase: minEach,
      newPasswordLowercase: counts.lower,
      minSpecialChar: minEach,
      newPasswordSpecialChar: counts.special,
      minNumber: minEach,
      newPasswordNumber: counts.digit,
    },
  };
}
