// How an account is shown to people.
import type { Account } from '../../../api/account.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

export function accountPairs(account: Account): readonly Pair[] {
  return [
    ['uid', account.uid],
    ['id', account.id],
    ['notes', account.notes],
    ['props', JSON.stringify(account.props)],
    ['created', account.createdAt],
    ['updated', account.updatedAt],
  ];
}

export const accountColumns: readonly Column<Account>[] = [
  { title: 'uid', value: (account) => account.uid, name: true },
  { title: 'id', value: (account) => account.id, whole: true },
  { title: 'notes', value: (account) => account.notes, spare: true },
  { title: 'created', value: (account) => account.createdAt, whole: true, spare: true },
];
