// Nobody grants what they lack, and nobody touches a user that is stronger than they are.
import type { User } from '../store/tables/users.ts';
import { missingFlag } from './authorize.ts';
import type { Caller } from './context.ts';
import { checkFlags, flagsOfText, parseFlags } from './flags.ts';
import type { JsonObject } from './json.ts';

/** The flags as text to store. Throws `invalid` for what is no flags, `forbidden` for a flag that the caller lacks. */
export function grantableFlags(caller: Caller, flags: JsonObject): string {
  const lacked = caller.flags.lacks(parseFlags(checkFlags(flags)));
  if (lacked !== undefined) throw missingFlag(lacked);
  return JSON.stringify(flags);
}

/** Whether the caller is that user, logged in; an API key that the user owns is not. */
export function isSelf(caller: Caller, user: User): boolean {
  return caller.kind === 'user' && caller.id === user.id;
}

/** Throws `forbidden` when the user has a flag that the caller lacks, unless it is the caller. */
export function mustNotBeStronger(caller: Caller, user: User): void {
  const lacked = isSelf(caller, user) ? undefined : caller.flags.lacks(flagsOfText(user.flagsText));
  if (lacked !== undefined) throw missingFlag(lacked);
}
