// Stands in for argon2 in tests about other things: fast, and without any strength.
import { createHash } from 'node:crypto';
import type { PasswordHasher } from '../../src/core/logins.ts';

const hashOf = (password: string): string => `pretended ${createHash('sha256').update(password).digest('hex')}`;

export const pretendHasher: PasswordHasher = {
  hash: async (password) => hashOf(password),
  verify: async (stored, password) => stored === hashOf(password),
};
