// Users as the interface shows them: never a trace of a password.
import type { User as UserRow } from '../store/tables/users.ts';
import type { JsonObject } from './json.ts';

export interface User {
  readonly id: string;
  readonly username: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly displayName: string;
  /** Ids of the API keys that the user owns. */
  readonly keys: readonly string[];
  readonly email: string;
  readonly flags: JsonObject;
  readonly props: JsonObject;
}

export function userOf(row: UserRow): User {
  return {
    id: row.id,
    username: row.username,
    firstName: row.firstName,
    lastName: row.lastName,
    displayName: row.displayName,
    keys: row.keys,
    email: row.email,
    flags: JSON.parse(row.flagsText),
    props: row.props,
  };
}
