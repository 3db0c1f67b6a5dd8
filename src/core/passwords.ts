// Passwords as the core needs them: hashing through a port, since that takes long, and making one for a user who has
// none.
import { hashPassword, passwordSaltLength, verifyPassword } from '../crypto/argon2id.ts';
import { judgePassword } from '../crypto/password-rules.ts';

export interface PasswordHasher {
  /** The text to store for a new password. */
  hash(password: string): Promise<string>;
  /** Whether the password made that stored text. Takes the same time either way. */
  verify(stored: string, password: string): Promise<boolean>;
}

export function inPlaceHasher(random: (length: number) => Uint8Array): PasswordHasher {
  return {
    hash: async (password) => hashPassword(password, random(passwordSaltLength)),
    verify: async (stored, password) => verifyPassword(stored, password),
  };
}

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
