// Passwords that the appliance makes itself, for users that are created with one.
import { judgePassword } from '../crypto/password-rules.ts';

/** 64 characters, none that is mistaken for another (0 O, 1 l I): 6 bits each. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz-_.+!%=';
const generatedLength = 20;

/** A random password that meets the rules, about 119 bits. */
export function generatePassword(random: (length: number) => Uint8Array): string {
  for (;;) {
    const password = Array.from(random(generatedLength), (byte) => alphabet.charAt(byte & 63)).join('');
    if (judgePassword(password).isValid) return password;
  }
}
