// Finding an account by its id or by the uid that its maker chose.
import { KmsError } from '../errors.ts';
import type { Tables } from '../store/port.ts';
import type { Account } from '../store/tables/accounts.ts';

export type AccountRef = { readonly id: string } | { readonly uid: string };

/** The account. Throws `not-found`. */
export async function findAccount(tables: Pick<Tables, 'accounts'>, ref: AccountRef): Promise<Account> {
  const account = 'uid' in ref ? await tables.accounts.byUid(ref.uid) : await tables.accounts.byId(ref.id);
  if (!account) throw new KmsError('not-found', 'there is no such account');
  return account;
}
