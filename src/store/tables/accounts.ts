// The table of accounts, which API keys belong to.

import type { JsonObject } from '../../model/json.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';
import { readPart } from './page.ts';

export interface Account {
  readonly seq: number;
  readonly id: string;
  /** Chosen by the client; unique, case-sensitive. */
  readonly uid: string;
  readonly notes: string;
  readonly props: JsonObject;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewAccount = Omit<Account, 'seq'>;

interface AccountRow extends Row {
  seq: number;
  id: string;
  uid: string;
  notes: string;
  props: string;
  created_at: number;
  updated_at: number;
}

export type AccountTable = ReturnType<typeof accountTable>;

export function accountTable(sql: Sql) {
  return {
    insert(account: NewAccount): void {
      sql.run(
        'INSERT INTO accounts (id, uid, notes, props, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)',
        account.id,
        account.uid,
        account.notes,
        toJson(account.props),
        account.createdAt,
        account.updatedAt,
      );
    },

    byId(id: string): Account | undefined {
      const row = sql.get<AccountRow>('SELECT * FROM accounts WHERE id = ?', id);
      return row && fromRow(row);
    },

    byUid(uid: string): Account | undefined {
      const row = sql.get<AccountRow>('SELECT * FROM accounts WHERE uid = ?', uid);
      return row && fromRow(row);
    },

    /** Oldest first, each mapped by `answer`. */
    list: <T>(page: PageRequest, answer: (account: Account) => T): Page<T> =>
      readPart(
        sql,
        page,
        (row: AccountRow) => answer(fromRow(row)),
        'SELECT * FROM accounts WHERE seq > ? ORDER BY seq LIMIT ?',
      ),

    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM accounts');
      return row?.n ?? 0;
    },

    update(account: Account): void {
      sql.run(
        'UPDATE accounts SET uid = ?, notes = ?, props = ?, updated_at = ? WHERE id = ?',
        account.uid,
        account.notes,
        toJson(account.props),
        account.updatedAt,
        account.id,
      );
    },

    /** Erases the account; the caller must erase its API keys first. */
    erase(id: string): void {
      sql.run('DELETE FROM accounts WHERE id = ?', id);
    },
  };
}

function fromRow(row: AccountRow): Account {
  return {
    seq: row.seq,
    id: row.id,
    uid: row.uid,
    notes: row.notes,
    props: objectOf(row.props),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
