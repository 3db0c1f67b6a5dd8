// What user names and e-mail addresses must be like, and that no two users share one.
import { KmsError } from '../errors.ts';
import type { UserTable } from '../store/tables/users.ts';

const maxUsername = 256;
const maxEmail = 254;
/** Light on purpose: one @ between two parts without spaces and without what an address list is made with. */
const email = /^[^\s@<>()[\]\\,;:"\p{Cc}]+@[^\s@<>()[\]\\,;:"\p{Cc}]+$/u;

export interface UserNames {
  readonly username?: string;
  readonly email?: string;
}

/** Throws `invalid`, naming each field that is wrong. */
export function checkUserNames({ username, email: address }: UserNames): void {
  const problems: [string, string][] = [];
  if (username !== undefined && usernameProblem(username)) problems.push(['username', usernameProblem(username) ?? '']);
  if (address !== undefined && (address.length > maxEmail || !email.test(address))) {
    problems.push(['email', 'expected an e-mail address']);
  }
  failWith('invalid', problems);
}

function usernameProblem(username: string): string | undefined {
  if ([...username].length > maxUsername) return `expected at most ${maxUsername} characters`;
  if (username.trim() !== username || /\p{Cc}/u.test(username))
    return 'expected no control characters, nor spaces around it';
  // Nobody could ask for such a user: as a part of a path it means something else.
  if (username === '' || username === '.' || username === '..') return 'expected a name';
  return undefined;
}

/** Throws `conflict`, naming each field that is taken by another user than `exceptId`. */
export async function checkFree(
  users: UserTable,
  { username, email: address }: UserNames,
  exceptId?: string,
): Promise<void> {
  const problems: [string, string][] = [];
  const byName = username === undefined ? undefined : await users.byUsername(username);
  if (byName && byName.id !== exceptId) problems.push(['username', 'is taken']);
  const byAddress = address === undefined ? undefined : await users.byEmail(address);
  if (byAddress && byAddress.id !== exceptId) problems.push(['email', 'is taken']);
  failWith('conflict', problems);
}

function failWith(code: 'invalid' | 'conflict', problems: readonly [string, string][]): void {
  if (problems.length === 0) return;
  const message = problems.map(([field, problem]) => `${field}: ${problem}`).join('; ');
  throw new KmsError(code, message, { fields: Object.fromEntries(problems) });
}
