// Tokens that stand for a session, an invite or a password reset: a prefix that says which, and 43 base62 characters from
// 256 random bits. Like API keys they are stored as `hashSecret` of the text alone.
import { base62 } from './api-key.ts';

const prefixes = { session: 'kmsat_', invite: 'kmsin_', reset: 'kmsrs_' } as const;
const body = /^[0-9A-Za-z]{43}$/;

export type TokenKind = keyof typeof prefixes;

/** A new token from 32 bytes of `random`. */
export function newToken(kind: TokenKind, random: (length: number) => Uint8Array): string {
  return prefixes[kind] + base62(random(32), 43);
}

/** Whether the text has the form of such a token; others need no look-up. */
export function isWellFormedToken(kind: TokenKind, text: string): boolean {
  return text.startsWith(prefixes[kind]) && body.test(text.slice(prefixes[kind].length));
}
