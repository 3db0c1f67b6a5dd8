// Where password hashes are made and checked: slow work, so that the server does it on a thread of its own, outside of any
// transaction. What stands here does it in place, for programs that serve nobody meanwhile.
import { hashPassword, passwordSaltLength, verifyPassword } from '../crypto/password.ts';

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
