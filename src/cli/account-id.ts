// Accounts as people name them: by their uid, or by an id, which has a form of its own.
import type { Client } from '../client/client.ts';

/** Whether the text has the form of an account's id. */
export function isAccountId(text: string): boolean {
  return /^acct_[0-9a-hjkmnp-tv-z]{26}$/.test(text);
}

/** The id of an account named by uid or id. */
export async function accountIdOf(client: Client, account: string): Promise<string> {
  return isAccountId(account) ? account : (await client.getAccount({ id: account, uid: true })).id;
}

/** The query that says which of the two a path value is. */
export function uidQuery(account: string): { uid?: true } {
  return isAccountId(account) ? {} : { uid: true };
}
